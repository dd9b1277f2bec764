// MCP's JS SDK against a server: node mcp.mjs URL QUESTION. Prints what it got as one JSON object.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, question] = process.argv.slice(2);
const client = new Client({ name: "test", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
const { tools } = await client.listTools();
const progress = [];
const onprogress = ({ message }) => progress.push(message.split(":")[0]);
const asked = await client.callTool({ name: "ask", arguments: { question } }, undefined, { onprogress });
const known = await client.callTool({ name: "know", arguments: { question } });
const found = await client.callTool({ name: "search", arguments: { query: question, k: 1 } });
const refused = await client.callTool({ name: "ask", arguments: { question, model: "nobody" } });
await client.close();
console.log(
  JSON.stringify({
    tools: tools.map((tool) => tool.name),
    progress,
    answer: asked.structuredContent.answer,
    knows: known.structuredContent.knows,
    title: found.structuredContent.passages[0].title,
    refused: refused.isError && refused.content[0].text,
  }),
);
