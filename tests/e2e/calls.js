// Calls by gRPC's own JavaScript client: node calls.js ADDRESS METHOD STREAM_METHOD HEX HEX_OF_ONE_THAT_HANGS
// Prints a JSON object: what came of each kind of call. Run where `npm install @grpc/grpc-js` was.
const path = require('path');
const grpc = require(path.join(process.cwd(), 'node_modules', '@grpc', 'grpc-js'));
const [address, method, streamMethod, given, hanging] = process.argv.slice(2);
const same = (bytes) => bytes;
const client = new grpc.Client(address, grpc.credentials.createInsecure());
const message = Buffer.from(given, 'hex');
const sleeper = Buffer.from(hanging, 'hex');

function unary(bytes, metadata, then) {
  return new Promise((resolve) => {
    const call = client.makeUnaryRequest(method, same, same, bytes, metadata, (error, answer) =>
      resolve(error ? grpc.status[error.code] : 'OK ' + answer.toString('latin1')));
    if (then) then(call);
  });
}

function halfClosed() {
  return new Promise((resolve) => {
    const call = client.makeBidiStreamRequest(streamMethod, same, same);
    let parts = 0;
    call.on('data', () => { parts += 1; });
    call.on('error', (error) => resolve(grpc.status[error.code]));
    call.on('end', () => resolve('OK, parts: ' + parts));
    call.write(message);
    call.end(); // it sends no more, and waits
  });
}

function openStream() {
  const call = client.makeBidiStreamRequest(streamMethod, same, same);
  let parts = 0;
  let heard = () => {};
  const first = new Promise((resolve) => { heard = resolve; });
  const ended = new Promise((resolve) => {
    call.on('data', () => { parts += 1; heard(); });
    call.on('error', (error) => { heard(); resolve(grpc.status[error.code]); });
    call.on('end', () => resolve(parts));
  });
  call.write(message);
  return { call, first, ended };
}

async function main() {
  const long = new grpc.Metadata();
  long.set('x-long', 'a'.repeat(100000));
  const none = new grpc.Metadata();
  const stream = openStream();
  await stream.first;
  const overLong = await unary(message, long); // on the same connection
  stream.call.write(message);
  stream.call.end();
  const told = {
    acrossOverLong: await stream.ended,
    overLong,
    plain: await unary(message, none),
    halfClosed: await halfClosed(),
    cancelled: await unary(sleeper, none, (call) => setTimeout(() => call.cancel(), 500)),
    afterwards: await unary(message, none),
  };
  console.log(JSON.stringify(told));
  client.close();
}

main();
