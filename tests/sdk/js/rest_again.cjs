// One POST of @azure-rest/ai-personalizer, sent again if need be. node rest_again.cjs ADDRESS KEY PATH BODY [EVENT]
const { default: connect } = require("@azure-rest/ai-personalizer");

const [address, key, path, body, ...ids] = process.argv.slice(2);
(async () => {
  const options = { allowInsecureConnection: true, retryOptions: { retryDelayInMs: 10 } };
  const client = connect(address, { key }, options);
  const response = await client.path(path, ...ids).post({ body: JSON.parse(body) });
  console.log(JSON.stringify({ status: Number(response.status), body: response.body }));
})();
