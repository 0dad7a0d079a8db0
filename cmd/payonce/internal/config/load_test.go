package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

const good = `
addr: 127.0.0.1:9000
admin_addr: 127.0.0.1:9001
public_url: https://pay.shop.example/
database_url: sqlite:///var/lib/payonce/payonce.db
node_id: a
worker: false
answer_within: 10s
call_timeout: 30s
merchants:
  - id: m1
    surplus: review
    accounts:
      - {id: s1, channel: stripe, environment: live, secret_key: sk_live_x, webhook_secret: whsec_x, publishable_key: pk_live_x}
      - {id: s2, channel: stripe, environment: test, secret_key: sk_test_x, webhook_secret: whsec_y, base_url: "http://127.0.0.1:9090/stripe?strict=1", trusted_date: true, paused: true}
`

func write(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadReadsEveryMember(t *testing.T) {
	c, warnings, err := Load(Source{File: write(t, "payonce.yaml", good, 0o600)})
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 0 {
		t.Errorf("warnings %q", warnings)
	}
	if c.Addr != "127.0.0.1:9000" || c.AdminAddr != "127.0.0.1:9001" || c.PublicURL != "https://pay.shop.example" ||
		c.DatabaseURL.Reveal() != "sqlite:///var/lib/payonce/payonce.db" || c.NodeID != "a" || c.Worker ||
		c.AnswerWithin != 10*time.Second || c.CallTimeout != 30*time.Second || c.DocsURL != DefaultDocsURL {
		t.Errorf("service: %+v", c)
	}
	a := c.Merchants[0].Accounts[1]
	if c.Merchants[0].Surplus != "review" || a.ID != "s2" || a.Environment != "test" || a.SecretKey.Reveal() != "sk_test_x" ||
		a.WebhookSecret.Reveal() != "whsec_y" || a.BaseURL != "http://127.0.0.1:9090/stripe?strict=1" || !a.TrustedDate || !a.Paused {
		t.Errorf("account: %+v", a)
	}
}

func TestEnvironmentWinsOverFileOverDefault(t *testing.T) {
	file := write(t, "payonce.yaml", "addr: 127.0.0.1:9000\ndatabase_url: sqlite:///a.db\nanswer_within: 5s\n", 0o600)
	secret := write(t, "db", "sqlite:///from-file.db\n", 0o600)
	c, _, err := Load(Source{File: file, Environ: []string{"PAYONCE_ADDR=127.0.0.1:7000", "PAYONCE_DATABASE_URL_FILE=" + secret, "PAYONCE_WORKER=false", "HOME=/x"}})
	if err != nil {
		t.Fatal(err)
	}
	if c.Addr != "127.0.0.1:7000" || c.Worker || c.DatabaseURL.Reveal() != "sqlite:///from-file.db" {
		t.Errorf("environment did not win: %+v", c)
	}
	if c.AnswerWithin != 5*time.Second || c.CallTimeout != DefaultCallTimeout || c.AdminAddr != DefaultAdminAddr || c.PublicURL != "http://127.0.0.1:7000" {
		t.Errorf("file or default lost: %+v", c)
	}
}

func TestSecretFilesAreRelativeToTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"key": "sk_test_f\n", "hook": "whsec_f", "db": "sqlite:///x.db",
		"payonce.yaml": "database_url_file: db\nmerchants: [{id: m, accounts: [{id: s, channel: stripe, environment: test, secret_key_file: key, webhook_secret_file: hook}]}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "key"), 0o644); err != nil {
		t.Fatal(err)
	}
	c, warnings, err := Load(Source{File: filepath.Join(dir, "payonce.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	if a := c.Merchants[0].Accounts[0]; a.SecretKey.Reveal() != "sk_test_f" || a.WebhookSecret.Reveal() != "whsec_f" {
		t.Errorf("secrets were not read: %q %q", a.SecretKey.Reveal(), a.WebhookSecret.Reveal())
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "chmod 600") || !strings.Contains(warnings[0], "key") {
		t.Errorf("one warning about the readable file is due, got %q", warnings)
	}
}

func TestWrongSettingsAreRefusedByPath(t *testing.T) {
	account := func(members string) string {
		return "database_url: sqlite:///x.db\nmerchants: [{id: m1, accounts: [{id: s1, channel: stripe, environment: test, secret_key: sk_test_a, webhook_secret: w}, {" + members + "}]}]\n"
	}
	for name, tc := range map[string]struct {
		yaml    string
		environ []string
		want    string
	}{
		"unknown setting":         {yaml: "database_url: sqlite:///x.db\naddres: x\n", want: "payonce.yaml:2: addres: unknown setting; did you mean addr?"},
		"unknown account member":  {yaml: account("id: s2, channel: stripe, secret_keys: x"), want: "merchants[0].accounts[1].secret_keys: unknown setting; did you mean secret_key?"},
		"twice in one mapping":    {yaml: "addr: 127.0.0.1:1\naddr: 127.0.0.1:2\n", want: "already defined"},
		"not YAML":                {yaml: "addr: [", want: "payonce.yaml: line 1"},
		"two documents":           {yaml: "database_url: sqlite:///x.db\n---\naddr: x\n", want: "more than one YAML document"},
		"wrong type":              {yaml: "worker: perhaps\n", want: "payonce.yaml: line 1: cannot unmarshal"},
		"no database":             {yaml: "node_id: a\n", want: "database_url: required"},
		"database scheme":         {yaml: "database_url: oracle://x\n", want: `database_url: "oracle" is none of sqlite, postgres, mysql`},
		"sqlite relative":         {yaml: "database_url: sqlite://x.db\n", want: "three slashes"},
		"both forms of a secret":  {yaml: "database_url: sqlite:///x\ndatabase_url_file: y\n", want: "set either database_url or database_url_file"},
		"secret file missing":     {yaml: "database_url_file: nowhere\n", want: "database_url_file: cannot read"},
		"address":                 {yaml: "database_url: sqlite:///x.db\naddr: here\n", want: `addr: "here" is not host:port`},
		"same addresses":          {yaml: "database_url: sqlite:///x.db\nadmin_addr: 127.0.0.1:8080\n", want: "admin_addr: must differ"},
		"public url missing":      {yaml: "database_url: sqlite:///x.db\naddr: 0.0.0.0:80\n", want: "public_url: required"},
		"public url form":         {yaml: "database_url: sqlite:///x.db\npublic_url: https://x/?a=b\n", want: "public_url: must be an http"},
		"node id":                 {yaml: "database_url: sqlite:///x.db\nnode_id: a/b\n", want: "node_id: must be 1 to 32"},
		"duration without unit":   {yaml: "database_url: sqlite:///x.db\nanswer_within: 20\n", want: "a duration with its unit, like 20s"},
		"call timeout too short":  {yaml: "database_url: sqlite:///x.db\ncall_timeout: 2s\n", want: "call_timeout: 2s is not between answer_within (20s)"},
		"merchant id":             {yaml: "database_url: sqlite:///x.db\nmerchants: [{id: \"\"}]\n", want: "merchants[0].id: must be"},
		"merchant twice":          {yaml: "database_url: sqlite:///x.db\nmerchants: [{id: m}, {id: m}]\n", want: `merchants[1].id: merchant "m" stands here twice`},
		"surplus":                 {yaml: "database_url: sqlite:///x.db\nmerchants: [{id: m, surplus: maybe}]\n", want: `merchants[0].surplus: "maybe"`},
		"account twice":           {yaml: account("id: s1, channel: stripe, environment: test, secret_key: k, webhook_secret: w"), want: `merchants[0].accounts[1].id: "s1" is the id of merchants[0].accounts[0] too`},
		"channel not built":       {yaml: account("id: a1, channel: wechatpay"), want: "merchants[0].accounts[1].channel: wechatpay is not built into this version"},
		"channel unknown":         {yaml: account("id: a1, channel: strip"), want: "unknown channel; did you mean stripe?"},
		"channel missing":         {yaml: account("id: a1, environment: test"), want: "merchants[0].accounts[1].channel: required"},
		"environment":             {yaml: account("id: s2, channel: stripe, environment: prod, secret_key: k, webhook_secret: w"), want: "merchants[0].accounts[1].environment: must be test or live"},
		"secret key missing":      {yaml: account("id: s2, channel: stripe, environment: test, webhook_secret: w"), want: "merchants[0].accounts[1].secret_key: required"},
		"webhook secret missing":  {yaml: account("id: s2, channel: stripe, environment: test, secret_key: k"), want: "merchants[0].accounts[1].webhook_secret: required"},
		"live key in test":        {yaml: account("id: s2, channel: stripe, environment: test, secret_key: sk_live_k, webhook_secret: w"), want: "accounts[1].secret_key: is a live key"},
		"test key in live":        {yaml: account("id: s2, channel: stripe, environment: live, secret_key: rk_test_k, webhook_secret: w"), want: "accounts[1].secret_key: is a test key"},
		"base url form":           {yaml: account("id: s2, channel: stripe, environment: test, secret_key: k, webhook_secret: w, base_url: \"ftp://x/?strict=1\""), want: "accounts[1].base_url: must be an http"},
		"live over http":          {yaml: account("id: s2, channel: stripe, environment: live, secret_key: k, webhook_secret: w, base_url: \"http://x.example\""), want: "accounts[1].base_url: must be https"},
		"live with public http":   {yaml: "public_url: http://pay.example\n" + account("id: s2, channel: stripe, environment: live, secret_key: k, webhook_secret: w"), want: "public_url: must be https"},
		"fingerprint short":       {yaml: "database_url: sqlite:///x.db\nfingerprint_secrets: [{id: f1, secret: short}]\n", want: "fingerprint_secrets[0].secret: needs at least 16 bytes"},
		"fingerprint id reserved": {yaml: "database_url: sqlite:///x.db\nfingerprint_secrets: [{id: installation, secret: 0123456789abcdef}]\n", want: "fingerprint_secrets[0].id"},
		"unknown variable":        {yaml: good, environ: []string{"PAYONCE_ADMINADDR=x"}, want: "PAYONCE_ADMINADDR: unknown variable; did you mean PAYONCE_ADMIN_ADDR?"},
		"malformed variable":      {yaml: good, environ: []string{"PAYONCE_WORKER=perhaps"}, want: `PAYONCE_WORKER: "perhaps" is not true or false`},
		"malformed duration":      {yaml: good, environ: []string{"PAYONCE_CALL_TIMEOUT=soon"}, want: `PAYONCE_CALL_TIMEOUT: "soon" is not a duration`},
		"failpoint in release":    {yaml: good, environ: []string{"PAYONCE_FAILPOINT=t1.after:kill"}, want: "this build has no failpoints"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Load(Source{File: write(t, "payonce.yaml", tc.yaml, 0o600), Environ: tc.environ})
			var p Problems
			if !errors.As(err, &p) {
				t.Fatalf("not refused: %v", err)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("message lacks %q:\n%v", tc.want, err)
			}
		})
	}
}

func TestEveryProblemIsToldAtOnce(t *testing.T) {
	file := write(t, "payonce.yaml", "node_id: a/b\naddr: here\nmerchants: [{id: m, surplus: x}]\n", 0o600)
	_, _, err := Load(Source{File: file})
	var p Problems
	if !errors.As(err, &p) || len(p) != 4 {
		t.Errorf("want four problems, got %q", p)
	}
}

func TestSecretsNeverPrint(t *testing.T) {
	c, _, err := Load(Source{File: write(t, "payonce.yaml", good, 0o600)})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "config", c, "key", c.Merchants[0].Accounts[0].SecretKey)
	j, _ := json.Marshal(c)
	y, _ := yaml.Marshal(c)
	for _, out := range []string{fmt.Sprintf("%v %+v %#v %s %q %x", c, c, c, c.DatabaseURL, c.DatabaseURL, c.DatabaseURL), string(j), string(y), log.String()} {
		for _, secret := range []string{"sk_live_x", "whsec_", "/var/lib", fmt.Sprintf("%x", "sk_live_x")} {
			if strings.Contains(out, secret) {
				t.Errorf("%q is shown in %s", secret, out)
			}
		}
	}
}

func TestAWrongSecretIsNotRepeatedInItsMessage(t *testing.T) {
	file := write(t, "payonce.yaml", "database_url: {password: hunter2}\n", 0o600)
	_, _, err := Load(Source{File: file})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("message: %v", err)
	}
}
