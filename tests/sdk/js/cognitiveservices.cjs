// Every call of @azure/cognitiveservices-personalizer; prints what each gave. node cognitiveservices.cjs ADDRESS KEY
const { ApiKeyCredentials } = require("@azure/ms-rest-js");
const { PersonalizerClient } = require("@azure/cognitiveservices-personalizer");

const [address, key] = process.argv.slice(2);
const EVENT = "npm/old é"; // percent-encoded in paths
const ACTIONS = ["tea", "coffee", "mate"].map((id) => ({ id, features: [{ kind: id }] }));
const RANK = { contextFeatures: [{ time: "morning", hour: 7 }], actions: ACTIONS };

const outcomes = {};
const note = async (name, promise) => {
  try {
    const { _response: response, ...body } = await promise;
    outcomes[name] = { status: response.status, body };
  } catch (error) {
    outcomes[name] = { status: error.statusCode, kind: error.constructor.name, body: error.body };
  }
};
const connected = (key, endpoint = address) =>
  new PersonalizerClient(
    new ApiKeyCredentials({ inHeader: { "Ocp-Apim-Subscription-Key": key } }),
    endpoint,
  );
const callsOf = (part) =>
  Object.getOwnPropertyNames(Object.getPrototypeOf(part)).filter((name) => name !== "constructor");

(async () => {
  const client = connected(key);
  outcomes.calls = [...callsOf(client), ...callsOf(client.events)];
  await note("rank", client.rank({ ...RANK, eventId: EVENT, deferActivation: true }));
  await note("activate", client.events.activate(EVENT));
  await note("reward", client.events.reward(EVENT, { value: 0.5 }));
  await note("slash", connected(key, `${address}/`).rank(RANK));
  await note("refused", client.rank({ ...RANK, excludedActions: ["tea", "coffee", "mate"] }));
  await note("too large", client.events.reward(EVENT, { value: 3 }));
  await note("wrong key", connected("this-key-is-not-known").rank(RANK));
  console.log(JSON.stringify(outcomes));
})();
