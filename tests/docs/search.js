// Ask the search of the built site: node search.js SITE WORD... prints a JSON object, for each word the pages found, best first.
const fs = require("fs"), path = require("path"), vm = require("vm");
const [site, ...words] = process.argv.slice(2);
const workers = path.join(site, "assets/javascripts/workers");
const worker = fs.readdirSync(workers).find((name) => name.startsWith("search."));
let heard;
const self = { postMessage: (message) => heard(message) };
const told = () => new Promise((resolve) => { heard = resolve; });
vm.runInNewContext(fs.readFileSync(path.join(workers, worker), "utf8"), { self, Intl, Map, Set, console });

(async () => {
  const index = JSON.parse(fs.readFileSync(path.join(site, "search.json"), "utf8"));
  let answer = told();
  self.onmessage({ data: { type: 0, data: index } });
  await answer;
  const found = {};
  for (const word of words) {
    answer = told();
    self.onmessage({ data: { type: 2, data: { input: word, page: undefined } } });
    const { type, data } = await answer;
    found[word] = type === 3 ? data.items.map((item) => index.items[item.id] ? index.items[item.id].location : item) : null;
  }
  console.log(JSON.stringify(found));
})();
