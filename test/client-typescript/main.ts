// Lists, pages and patches with a client that was generated from the served contract. The
// compiler checks every name and type that is used here against that contract.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { env: Record<string, string | undefined> };

function variable(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

function check(condition: boolean, reason: string): asserts condition {
  if (!condition) throw new Error(reason);
}

const client = createClient<paths>({
  baseUrl: variable("FINDINGS_URL"),
  headers: { Authorization: `Bearer ${variable("FINDINGS_API_KEY")}` },
});

// A list's envelope, whatever its items are.
interface Page<Item> {
  items: Item[];
  has_more: boolean;
  next_cursor: string;
  total: number;
}

async function walk<Item extends { id: string }>(
  name: string,
  read: (cursor: string) => Promise<Page<Item>>,
): Promise<Map<string, Item>> {
  const all = new Map<string, Item>();
  let cursor = "";
  let pages = 0;
  for (;;) {
    const page = await read(cursor);
    pages++;
    for (const item of page.items) {
      check(!all.has(item.id), `${name}: ${item.id} was returned twice`);
      all.set(item.id, item);
    }
    if (!page.has_more) {
      check(page.total === all.size, `${name}: total is ${page.total}, and there are ${all.size}`);
      break;
    }
    cursor = page.next_cursor;
  }
  console.log(`${name}: ${all.size} items on ${pages} pages`);
  return all;
}

// The answer's data, or what the service said instead.
function ok<Data>(answer: { data?: Data; error?: components["schemas"]["Error"]; response: Response }): Data {
  if (answer.data === undefined) {
    throw new Error(`${answer.response.status}: ${answer.error?.error}: ${answer.error?.detail}`);
  }
  return answer.data;
}

const findings = await walk("GET /v1/findings", async (cursor) =>
  ok(await client.GET("/v1/findings", { params: { query: { cursor, size: 2, sort: "created_at", order: "asc" } } })),
);
await walk("GET /v2/findings", async (cursor) =>
  ok(await client.GET("/v2/findings", { params: { query: { cursor, size: 2, severity: "low" } } })),
);
await walk("GET /v2/repos", async (cursor) =>
  ok(await client.GET("/v2/repos", { params: { query: { cursor, size: 1, sort: "last_committed_at" } } })),
);
await walk("GET /v1/reviews", async (cursor) =>
  ok(await client.GET("/v1/reviews", { params: { query: { cursor, size: 1, custom: "reviewed" } } })),
);

const id = variable("FINDINGS_ID");
const before = findings.get(id);
check(before !== undefined, `${id} is not listed`);

const muted = ok(await client.PATCH("/v1/findings/{id}", { params: { path: { id } }, body: { user_status: "muted" } }));
check(muted.user_status === "muted" && muted.name === before.name, `v1: got ${JSON.stringify(muted)}`);

const commented = ok(
  await client.PATCH("/v2/findings/{id}", {
    params: { path: { id: muted.repo_id }, query: { finding_id: id, project_id: muted.project_id } },
    body: { user_status: "active", comments: "Confirmed by a generated client." },
  }),
);
check(commented.comments === "Confirmed by a generated client." && commented.user_status === "active", `v2: got ${JSON.stringify(commented)}`);
check(commented.details.severity === before.severity, "v1 and v2 differ in severity");
console.log("PATCH: v1 and v2");

const project = ok(
  await client.GET("/v2/repos/{id}/projects/{project_id}", { params: { path: { id: muted.repo_id, project_id: muted.project_id } } }),
);
check(project.repo.id === muted.repo_id, `the project is of ${project.repo.id}`);

// Errors have a type too.
const missing = await client.GET("/v2/issues/{id}", { params: { path: { id: "none" } } });
check(missing.response.status === 404 && missing.error?.error === "Resource not found", "an unknown issue must be 404");
console.log("errors: typed");
