// Called by gitmesh as `provision.mjs VERB FOLDER`. The folder holds one file for each value; what the
// server answers is written to FOLDER/answer. Every verb can be repeated.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const SERVER = 'http://127.0.0.1:3000/api';
const [verb, folder] = process.argv.slice(2);

const given = (name) => readFileSync(join(folder, name), 'utf8');

async function call(path, { method = 'GET', body, token } = {}) {
  const headers = { 'content-type': 'application/json' };
  if (token) headers.authorization = `Bearer ${token}`;
  const response = await fetch(SERVER + path, { method, headers, body: body && JSON.stringify(body) });
  // The answer's text may repeat what was sent, so only its number is told.
  if (!response.ok) throw new Error(`${method} ${path} ended with ${response.status}`);
  return response.json();
}

function logIn(password) {
  return call('/auth/login', { method: 'POST', body: { username: given('admin/login'), password } });
}

// A new password for the administrator; after a kill in between it may be set already.
async function apply() {
  const wanted = given('admin/value');
  const session = await logIn(wanted).catch(() => logIn(given('admin/previous')));
  const body = { username: session.user.username, password: wanted, role: session.user.role };
  await call(`/users/${session.user.id}`, { method: 'POST', body, token: session.token });
}

async function ensure() {
  const { token } = await logIn(given('admin/value'));
  const name = given('as');
  const { data } = await call('/websites?pageSize=1000', { token });
  const known = data.find((site) => site.name === name);
  const site = known ?? (await call('/websites', { method: 'POST', body: { name, domain: given('asks/domain') }, token }));
  writeFileSync(join(folder, 'answer', 'site'), site.id);
}

// A consumer has no login here, and what was counted is data: both are left until someone purges them.
const nothing = async () => {};

const verbs = { apply, ensure, confirm: () => logIn(given('admin/value')), retire: nothing, remove: nothing };

try {
  if (!(verb in verbs)) throw new Error(`no verb ${verb}`);
  await verbs[verb]();
} catch (error) {
  console.error(`umami: ${error.message}`);
  process.exit(1);
}
