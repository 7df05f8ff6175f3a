import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { hmac } from '../../../agentctl/interfaces/web/page/js/hmac.js';

test('it is that of others, for secrets and texts of all lengths', () => {
  for (let length = 0; length < 200; length += 1) {
    const [secret, text] = ['k'.repeat(length), 'é'.repeat(200 - length)];
    assert.equal(hmac(secret, text), createHmac('sha256', secret).update(text).digest('hex'), String(length));
  }
});
