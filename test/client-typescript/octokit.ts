// Uploads and follows a file with Octokit, as it is, and shows an error as it shows one.
import { Octokit } from "@octokit/rest";

declare const process: { env: Record<string, string | undefined> };

function variable(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

function check(condition: boolean, reason: string): asserts condition {
  if (!condition) throw new Error(reason);
}

// A file as GitHub takes it: compressed, in base64.
async function packed(document: unknown): Promise<string> {
  const stream = new Blob([JSON.stringify(document)]).stream().pipeThrough(new CompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

const [owner = "", repo = ""] = variable("FINDINGS_REPOSITORY").split("/");
const upload = {
  owner,
  repo,
  commit_sha: "8f3e1c2d5b7a9c4e6f8a0b2c4d6e8f0a1b3c5d7e",
  ref: "refs/heads/main",
  sarif: await packed({
    version: "2.1.0",
    runs: [{ tool: { driver: { name: "octokit-trial" } }, results: [{ ruleId: "R1", message: { text: "found" } }] }],
  }),
  started_at: new Date().toISOString(),
  validate: true,
};

for (const below of ["", "/api/v3"]) {
  const octokit = new Octokit({ auth: variable("FINDINGS_API_KEY"), baseUrl: variable("FINDINGS_URL").replace(/\/$/, "") + below });
  const { status, data: receipt } = await octokit.rest.codeScanning.uploadSarif(upload);
  check(status === 202 && !!receipt.id && !!receipt.url, `the upload is answered with ${status} ${JSON.stringify(receipt)}`);

  let state: string | undefined = "pending";
  while (state === "pending") {
    const { data } = await octokit.rest.codeScanning.getSarif({ owner, repo, sarif_id: receipt.id! });
    state = data.processing_status;
    check(state === "pending" || state === "complete", `the upload is ${JSON.stringify(data)}`);
  }
  const { data: followed } = await octokit.request(`GET ${receipt.url!}`);
  check(followed.processing_status === "complete", `${receipt.url} answers ${JSON.stringify(followed)}`);

  const message = await octokit.rest.codeScanning.uploadSarif({ ...upload, sarif: "bm90IGd6aXA=" }).then(
    () => "no error",
    (error: Error) => error.message,
  );
  check(message.startsWith("rejecting SARIF"), `the error is shown as ${message}`);
  console.log(`octokit at ${below || "/"}: ${receipt.id} is ${state}; an error is shown as: ${message}`);
}
