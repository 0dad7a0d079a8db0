CREATE TABLE IF NOT EXISTS events (
  id {{id}} NOT NULL PRIMARY KEY,
  merchant {{name}} NOT NULL,
  environment {{id}} NOT NULL,
  order_no {{name}} NOT NULL,
  type {{id}} NOT NULL,
  subject {{id}} NOT NULL,
  change_no {{int}} NOT NULL,
  data {{blob}} NOT NULL,
  made_at {{int}} NOT NULL,
  feed_no {{int}},
  CONSTRAINT events_once UNIQUE (subject, type, change_no),
  CONSTRAINT events_feed_no CHECK (feed_no IS NULL OR feed_no >= 1)
  {{unique "events_feed" "feed_no"}}
)
