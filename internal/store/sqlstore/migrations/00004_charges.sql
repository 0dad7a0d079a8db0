CREATE TABLE IF NOT EXISTS charges (
  id {{id}} NOT NULL PRIMARY KEY,
  order_id {{id}} NOT NULL,
  payment_id {{id}} NOT NULL,
  account {{name}} NOT NULL,
  payment_ref {{name}} NOT NULL,
  amount {{int}} NOT NULL,
  currency {{id}} NOT NULL,
  kind {{id}} NOT NULL,
  evidence_id {{id}} NOT NULL,
  charged_at {{int}} NOT NULL,
  CONSTRAINT charges_ref UNIQUE (payment_ref, account),
  CONSTRAINT charges_kind CHECK (kind IN ('effective', 'surplus', 'mismatch')),
  CONSTRAINT charges_amount CHECK (amount >= 0),
  CONSTRAINT charges_currency CHECK ({{currency}}),
  CONSTRAINT charges_evidence CHECK (evidence_id <> '')
  {{index "charges_order" "order_id"}}
)
