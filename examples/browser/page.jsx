// One chat, read by two libraries: @ag-ui/client on the left, the AI SDK's useChat on the right.
import { HttpAgent } from "@ag-ui/client";
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";
import { useRef, useState } from "react";
import { createRoot } from "react-dom/client";

const transport = new DefaultChatTransport({ api: "talk/ai-sdk" });

function Sdk() {
  const { messages, sendMessage, status, error } = useChat({ transport });
  return (
    <section id="ai-sdk" data-status={status}>
      <h2>AI SDK</h2>
      {messages.map((message) => (
        <div key={message.id} className={message.role}>
          {message.parts.map((part, at) =>
            part.type === "text" ? <p key={at}>{part.text}</p>
            : part.type === "dynamic-tool" ? <pre key={at}>{`${part.toolName}(${JSON.stringify(part.input)}) = ${part.output}`}</pre>
            : null)}
        </div>
      ))}
      {error && <p className="error">{error.message}</p>}
      <button onClick={() => sendMessage({ text: "Weather in Oslo?" })}>Ask</button>
    </section>
  );
}

function AgUi() {
  const agent = useRef(new HttpAgent({ url: "talk/ag-ui" })).current;
  const [shown, setShown] = useState({ messages: [], status: "ready" });
  const ask = async () => {
    agent.messages.push({ id: crypto.randomUUID(), role: "user", content: "Weather in Oslo?" });
    try {
      await agent.runAgent({}, {
        onMessagesChanged: ({ messages }) => setShown({ messages: [...messages], status: "streaming" }),
        onRunErrorEvent: ({ event }) => setShown((now) => ({ ...now, error: event.message })),
      });
    } catch (error) {
      setShown((now) => ({ ...now, error: String(error) }));
    }
    setShown((now) => ({ ...now, messages: [...agent.messages], status: "ready" }));
  };
  return (
    <section id="ag-ui" data-status={shown.status}>
      <h2>AG-UI</h2>
      {shown.messages.map((message) => (
        <div key={message.id} className={message.role}>
          {message.content && <p>{message.content}</p>}
          {message.toolCalls?.map((call) => <pre key={call.id}>{`${call.function.name}(${call.function.arguments})`}</pre>)}
        </div>
      ))}
      {shown.error && <p className="error">{shown.error}</p>}
      <button onClick={ask}>Ask</button>
    </section>
  );
}

createRoot(document.getElementById("root")).render(<main style={{ display: "flex", gap: "4em" }}><AgUi /><Sdk /></main>);
