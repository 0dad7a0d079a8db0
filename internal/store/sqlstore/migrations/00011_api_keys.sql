CREATE TABLE IF NOT EXISTS api_keys (
  id {{id}} NOT NULL PRIMARY KEY,
  hash {{hash}} NOT NULL,
  merchant {{name}} NOT NULL,
  environment {{id}} NOT NULL,
  role {{id}} NOT NULL,
  created_at {{int}} NOT NULL,
  revoked_at {{int}} NOT NULL,
  CONSTRAINT api_keys_hash UNIQUE (hash),
  CONSTRAINT api_keys_environment CHECK (environment IN ('test', 'live')),
  CONSTRAINT api_keys_role CHECK (role IN ('api', 'operator', 'read'))
)
