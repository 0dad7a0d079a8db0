CREATE TABLE IF NOT EXISTS installation (
  one {{bool}} NOT NULL PRIMARY KEY,
  id {{name}} NOT NULL,
  created_at {{int}} NOT NULL,
  CONSTRAINT installation_one CHECK (one = 1),
  CONSTRAINT installation_id CHECK (id <> '')
)
