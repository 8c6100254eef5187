// Every call of @azure-rest/ai-personalizer; prints what each gave. node rest.cjs ADDRESS KEY
const { readFileSync } = require("node:fs");
const { default: connect, isUnexpected } = require("@azure-rest/ai-personalizer");

const [address, key] = process.argv.slice(2);
const EVENT = "npm/rest é"; // percent-encoded in paths
const ACTIONS = ["tea", "coffee", "mate"].map((id) => ({ id, features: [{ kind: id }] }));
const RANK = { contextFeatures: [{ time: "morning", hour: 7 }], actions: ACTIONS };
const SLOTS = [
  { id: "top", baselineAction: "tea" },
  { id: "side", baselineAction: "coffee" },
];
const EVALUATION = {
  name: "one",
  startTime: new Date("2026-01-01"),
  endTime: new Date("2026-01-02"),
  policies: [],
};
const bytes = (body) => ({ body, contentType: "application/octet-stream" });

const outcomes = {};
const note = async (name, promise) => {
  const response = await promise;
  outcomes[name] = {
    status: Number(response.status),
    isUnexpected: isUnexpected(response),
    body: response.body,
  };
  return response.body;
};
const connected = (key) => connect(address, { key }, { allowInsecureConnection: true });

// The package's own table of calls and the status of their success.
const table = () => {
  const source = readFileSync(require.resolve("@azure-rest/ai-personalizer"), "utf8");
  return Object.fromEntries(
    [...source.matchAll(/^ {4}"([A-Z]+ \/\S+)": \["(\d+)"\],$/gm)].map(([, name, status]) => [name, Number(status)]),
  );
};

(async () => {
  const client = connected(key);
  const at = (path, ...ids) => client.path(path, ...ids);
  outcomes.calls = table();

  await note("POST /rank", at("/rank").post({ body: { ...RANK, eventId: EVENT, deferActivation: true } }));
  await note("POST /events/{eventId}/activate", at("/events/{eventId}/activate", EVENT).post());
  await note("POST /events/{eventId}/reward", at("/events/{eventId}/reward", EVENT).post({ body: { value: 0.5 } }));

  const slots = `${EVENT} of slots`;
  await note("POST /multislot/rank", at("/multislot/rank").post({ body: { ...RANK, slots: SLOTS, eventId: slots } }));
  await note("POST /multislot/events/{eventId}/activate", at("/multislot/events/{eventId}/activate", slots).post());
  await note(
    "POST /multislot/events/{eventId}/reward",
    at("/multislot/events/{eventId}/reward", slots).post({ body: { reward: [{ slotId: "top", value: 1 }] } }),
  );

  const configuration = await note("GET /configurations/service", at("/configurations/service").get());
  await note("PUT /configurations/service", at("/configurations/service").put({ body: configuration }));
  const policy = await note("GET /configurations/policy", at("/configurations/policy").get());
  await note("PUT /configurations/policy", at("/configurations/policy").put({ body: policy }));
  await note("DELETE /configurations/policy", at("/configurations/policy").delete());
  await note(
    "POST /configurations/applyFromEvaluation",
    at("/configurations/applyFromEvaluation").post({ body: { evaluationId: "none", policyName: "two" } }),
  );

  // As text, which `path(…).get()` makes of any body, a model is no longer one.
  const { body: stream } = await at("/model").get({ queryParameters: { signed: true } }).asNodeStream();
  const model = Buffer.concat(await stream.toArray());
  await note("PUT /model", at("/model").put(bytes(model)));
  await note("DELETE /model", at("/model").delete());
  await note("GET /model/properties", at("/model/properties").get());
  await note("GET /model", at("/model").get());
  outcomes["GET /model"].body = model.length;

  await note("GET /logs/properties", at("/logs/properties").get());
  await note("DELETE /logs", at("/logs").delete());
  await note("POST /logs/interactions", at("/logs/interactions").post(bytes(new Uint8Array([1, 2]))));
  await note("POST /logs/observations", at("/logs/observations").post(bytes(new Uint8Array([1, 2]))));

  const { id } = await note("POST /evaluations", at("/evaluations").post({ body: EVALUATION }));
  await note("GET /evaluations", at("/evaluations").get());
  await note("GET /evaluations/{evaluationId}", at("/evaluations/{evaluationId}", id).get());
  await note("DELETE /evaluations/{evaluationId}", at("/evaluations/{evaluationId}", id).delete());

  await note("refused", at("/rank").post({ body: { ...RANK, excludedActions: ["tea", "coffee", "mate"] } }));
  await note("wrong key", connected("this-key-is-not-known").path("/rank").post({ body: RANK }));
  console.log(JSON.stringify(outcomes));
})();
