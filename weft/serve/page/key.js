"use strict";
// Requests to the server. If it asks for an API key, the page does too, once: a cookie keeps it. Read next: page.js.

let asked_for_key = null; // a promise, so that several requests ask once

const json = (content, more = {}) =>
  ({ method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(content), ...more });

async function request(address, how = {}) {
  for (;;) {
    const came = await fetch(address, how);
    if (came.status !== 401) return came;
    asked_for_key ||= key_given().finally(() => { asked_for_key = null; });
    await asked_for_key;
  }
}

function key_given() {
  const form = at("key-form"), box = at("key");
  form.hidden = false;
  box.focus();
  say("an API key is required");
  return new Promise((done) => {
    form.onsubmit = async (event) => {
      event.preventDefault();
      const came = await fetch("/api/key", json({ key: box.value.trim() }));
      if (!came.ok) { say((await came.json()).error, true); return; }
      box.value = "";
      form.hidden = true;
      say("");
      done();
    };
  });
}
