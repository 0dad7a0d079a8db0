CREATE TABLE IF NOT EXISTS idempotency_keys (
  id {{hash}} NOT NULL PRIMARY KEY,
  merchant {{name}} NOT NULL,
  environment {{id}} NOT NULL,
  kind {{id}} NOT NULL,
  order_id {{id}} NOT NULL,
  payment_id {{id}} NOT NULL,
  fp_version {{int}} NOT NULL,
  fp_secret {{name}} NOT NULL,
  fp {{hash}} NOT NULL,
  converged {{bool}} NOT NULL,
  answer_until {{int}} NOT NULL,
  created_at {{int}} NOT NULL,
  CONSTRAINT idempotency_keys_environment CHECK (environment IN ('test', 'live')),
  CONSTRAINT idempotency_keys_order CHECK (order_id <> ''),
  CONSTRAINT idempotency_keys_payment CHECK (kind <> 'payment' OR payment_id <> ''),
  CONSTRAINT idempotency_keys_flags CHECK (converged IN (0, 1))
)
