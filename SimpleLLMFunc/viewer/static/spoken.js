// The messages of a request of each of the four wires, in the form of chat completions.

const CALLS = new Set(["tool_use", "function_call"]);
const RESULTS = new Set(["tool_result", "function_call_output"]);

function written(value) {
  return typeof value === "string" ? value : JSON.stringify(value ?? {});
}

function thoughtIn(part) {
  if (part.type === "thinking") return part.thinking || "";
  if (part.type === "reasoning") return [...(part.summary || []), ...(part.content || [])].map((each) => each.text).join("\n\n");
  return part.thought === true ? part.text || "" : null;
}

// One message; tool results in it become messages before it.
function heard(role, content, rest) {
  if (!Array.isArray(content)) return [{ ...rest, role, content }];
  const message = { ...rest, role, content: [] };
  const results = [];
  for (const each of content) {
    const part = each && typeof each === "object" ? each : { type: "text", text: String(each) };
    const call = part.functionCall || (CALLS.has(part.type) && part);
    const result = part.functionResponse || (RESULTS.has(part.type) && part);
    const thought = thoughtIn(part);
    if (call) {
      const made = { name: call.name, arguments: written(call.args ?? call.input ?? call.arguments) };
      message.tool_calls = [...(message.tool_calls || []), { function: made }];
    } else if (result) {
      const told = result.content ?? result.output ?? (result.response && (result.response.output ?? result.response.error)) ?? result.response;
      const parts = Array.isArray(told) ? heard("tool", told, {})[0]?.content : told;
      results.push({ role: "tool", name: result.name, tool_call_id: result.tool_use_id || result.call_id || result.id, content: parts ?? "" });
    } else if (thought !== null) {
      message.reasoning_content = [message.reasoning_content, thought].filter(Boolean).join("\n\n");
    } else {
      message.content.push(typeof part.text === "string" ? { type: "text", text: part.text } : part);
    }
  }
  const isEmpty = !message.content.length && !message.tool_calls && !message.reasoning_content;
  return isEmpty && results.length ? results : [...results, message];
}

// Null for a request of an unknown form.
export function messagesOf(request) {
  if (!request || typeof request !== "object") return null;
  const { messages, input, contents } = request;
  const system = request.system ?? request.instructions ?? request.systemInstruction?.parts;
  const said = system === undefined ? [] : heard("system", system, {});
  if (Array.isArray(contents)) return [...said, ...contents.flatMap((each) => heard(each.role === "model" ? "assistant" : each.role, each.parts, {}))];
  if (Array.isArray(input)) return [...said, ...input.flatMap((each) => (each.role ? heard(each.role, each.content, {}) : heard("assistant", [each], {})))];
  if (!Array.isArray(messages)) return null;
  return [...said, ...messages.flatMap((each) => (each && each.role ? heard(each.role, each.content, each) : [each]))];
}

export function toolNamesOf(request) {
  const tools = Array.isArray(request.tools) ? request.tools : [];
  return tools.flatMap((tool) => tool.functionDeclarations || [tool.function || tool]).map((tool) => tool.name || tool.type || Object.keys(tool)[0]);
}

export function formatOf(request) {
  const { generationConfig, output_config, text } = request;
  return request.response_format || text?.format || output_config?.format || generationConfig?.responseJsonSchema;
}
