// openai-js against a server: node openai.mjs URL QUESTION. Prints what it got as one JSON object.
import OpenAI from "openai";

const [url, question] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
const model = "gnothi/seakr";
const messages = [{ role: "user", content: question }];

const chat = await client.chat.completions.create({ model, messages });
let streamed = "";
for await (const chunk of await client.chat.completions.create({ model, messages, stream: true })) {
  streamed += chunk.choices[0]?.delta?.content ?? "";
}
const helper = await client.chat.completions.stream({ model, messages }).finalContent();
const response = await client.responses.create({ model, input: question });
let deltas = "";
for await (const event of await client.responses.create({ model, input: question, stream: true })) {
  if (event.type === "response.output_text.delta") deltas += event.delta;
}
const final = await client.responses.stream({ model, input: question }).finalResponse();
let refused = null;
try {
  await client.chat.completions.create({ model: "gnothi/nobody", messages });
} catch (error) {
  refused = [error.status, error.code];
}
console.log(
  JSON.stringify({
    chat: chat.choices[0].message.content,
    streamed,
    helper,
    response: response.output_text,
    deltas,
    final: final.output_text,
    kinds: final.output.map((item) => item.type),
    cited: chat.choices[0].message.annotations[0]?.type,
    refused,
  }),
);
