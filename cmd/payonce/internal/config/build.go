package config

import (
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/payonce/payonce"
)

const (
	maxNodeID = 32
	maxID     = 64
	// minFingerprintSecret is the least that an HMAC key should have.
	minFingerprintSecret = 16
)

// pick sets dst to the first value that is said.
func pick[T any](dst *T, said ...*T) {
	for _, v := range said {
		if v != nil {
			*dst = *v
			return
		}
	}
}

func (l *loader) build(file, vars *settings) *Config {
	c := &Config{
		Addr: DefaultAddr, AdminAddr: DefaultAdminAddr, NodeID: hostNode(), StateDir: ".", Worker: true,
		AnswerWithin: DefaultAnswerWithin, CallTimeout: DefaultCallTimeout, DocsURL: DefaultDocsURL,
	}
	pick(&c.Addr, vars.Addr, file.Addr)
	pick(&c.AdminAddr, vars.AdminAddr, file.AdminAddr)
	pick(&c.PublicURL, vars.PublicURL, file.PublicURL)
	pick(&c.NodeID, vars.NodeID, file.NodeID)
	pick(&c.Worker, vars.Worker, file.Worker)
	pick(&c.AnswerWithin, vars.AnswerWithin, file.AnswerWithin)
	pick(&c.CallTimeout, vars.CallTimeout, file.CallTimeout)
	pick(&c.DocsURL, vars.DocsURL, file.DocsURL)
	switch {
	case vars.StateDir != nil:
		c.StateDir = *vars.StateDir
	case file.StateDir != nil && filepath.IsAbs(*file.StateDir):
		c.StateDir = *file.StateDir
	case file.StateDir != nil:
		c.StateDir = filepath.Join(l.dir, *file.StateDir)
	}
	c.DatabaseURL = l.databaseURL(file, vars)
	l.checkService(c)
	l.fingerprintSecrets(c, file)
	l.merchants(c, file)
	return c
}

func (l *loader) databaseURL(file, vars *settings) Secret {
	value, path, dir := file.DatabaseURL, file.DatabaseURLFile, l.dir
	if vars.DatabaseURL != nil || vars.DatabaseURLFile != nil {
		value, path, dir = vars.DatabaseURL, vars.DatabaseURLFile, "."
	}
	before := len(l.problems)
	secret, ok := l.secret("", "database_url", value, path, dir)
	if !ok {
		if len(l.problems) == before {
			l.add("database_url: required (or database_url_file, or %sDATABASE_URL), for example sqlite:///var/lib/payonce/payonce.db", Prefix)
		}
		return secret
	}
	scheme, rest, found := strings.Cut(secret.Reveal(), "://")
	switch {
	case !found || rest == "":
		l.add("database_url: must start with sqlite://, postgres:// or mysql://")
	case scheme == "sqlite" && !strings.HasPrefix(rest, "/"):
		l.add("database_url: a SQLite path is absolute and has three slashes: sqlite:///path/file.db")
	case scheme != "sqlite" && scheme != "postgres" && scheme != "postgresql" && scheme != "mysql":
		l.add("database_url: %q is none of sqlite, postgres, mysql", scheme)
	}
	return secret
}

func (l *loader) checkService(c *Config) {
	apiLoopback := l.hostPort("addr", c.Addr)
	if !l.hostPort("admin_addr", c.AdminAddr) {
		l.warnings = append(l.warnings, "admin_addr "+c.AdminAddr+" is not a loopback address: metrics and profiles are open to whoever reaches it")
	}
	if c.AdminAddr == c.Addr && !strings.HasSuffix(c.Addr, ":0") {
		l.add("admin_addr: must differ from addr")
	}
	switch {
	case c.PublicURL == "" && apiLoopback:
		c.PublicURL = "http://" + c.Addr
	case c.PublicURL == "":
		l.add("public_url: required: notify, return and checkout addresses are made from it")
	default:
		c.PublicURL = strings.TrimRight(c.PublicURL, "/")
		l.httpURL("public_url", c.PublicURL, false)
	}
	if !validID(c.NodeID, maxNodeID) {
		l.add("node_id: must be 1 to %d of A-Z a-z 0-9 _ -", maxNodeID)
	}
	if c.StateDir == "" {
		l.add("state_dir: must not be empty")
	}
	if c.AnswerWithin < 100*time.Millisecond || c.AnswerWithin > time.Minute {
		l.add("answer_within: %v is not between 100ms and 1m; write a unit, as in 20s", c.AnswerWithin)
	}
	if c.CallTimeout < c.AnswerWithin || c.CallTimeout > 10*time.Minute {
		l.add("call_timeout: %v is not between answer_within (%v) and 10m", c.CallTimeout, c.AnswerWithin)
	}
	l.httpURL("docs_url", c.DocsURL, false)
}

// hostPort checks an address to listen on and reports whether only this machine
// reaches it.
func (l *loader) hostPort(at, addr string) (loopback bool) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "" {
		l.add("%s: %q is not host:port", at, addr)
		return true
	}
	return LoopbackHost(host)
}

// LoopbackHost reports whether the host names this machine alone.
func LoopbackHost(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// httpURL checks an address without query and fragment. Plain http is for this
// machine, except where demanded is false.
func (l *loader) httpURL(at, text string, https bool) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		l.add("%s: must be an http or https address without query, fragment or password", at)
		return
	}
	if https && u.Scheme != "https" && !LoopbackHost(u.Hostname()) {
		l.add("%s: must be https, since live money goes through it", at)
	}
}

func (l *loader) fingerprintSecrets(c *Config, file *settings) {
	seen := map[string]bool{"installation": true} // the id of the derived secret
	for i, f := range file.FingerprintSecrets {
		at := index("fingerprint_secrets", i)
		if !validID(f.ID, maxID) || seen[f.ID] {
			l.add("%s.id: must be 1 to %d of A-Z a-z 0-9 _ -, used once, and not \"installation\"", at, maxID)
		}
		seen[f.ID] = true
		before := len(l.problems)
		secret, ok := l.secret(at, "secret", f.Secret, f.SecretFile, l.dir)
		if len(l.problems) == before && (!ok || len(secret.Reveal()) < minFingerprintSecret) {
			l.add("%s.secret: needs at least %d bytes", at, minFingerprintSecret)
		}
		c.FingerprintSecrets = append(c.FingerprintSecrets, FingerprintSecret{ID: f.ID, Secret: secret})
	}
}

func (l *loader) merchants(c *Config, file *settings) {
	ids, accounts, live := map[string]bool{}, map[string]string{}, false
	for i, m := range file.Merchants {
		at := index("merchants", i)
		switch {
		case !validID(m.ID, maxID):
			l.add("%s.id: must be 1 to %d of A-Z a-z 0-9 _ -", at, maxID)
		case ids[m.ID]:
			l.add("%s.id: merchant %q stands here twice", at, m.ID)
		}
		ids[m.ID] = true
		out := Merchant{ID: m.ID, Surplus: m.Surplus}
		switch m.Surplus {
		case "":
			out.Surplus = "auto"
		case "auto", "review":
		default:
			l.add("%s.surplus: %q is neither auto nor review", at, m.Surplus)
		}
		for j := range m.Accounts {
			aat := index(at+".accounts", j)
			a := l.account(aat, &m.Accounts[j])
			live = live || a.Environment == payonce.Live
			if first, twice := accounts[a.ID]; twice && a.ID != "" {
				l.add("%s.id: %q is the id of %s too; account ids are unique in the installation", aat, a.ID, first)
			}
			accounts[a.ID] = aat
			out.Accounts = append(out.Accounts, a)
		}
		c.Merchants = append(c.Merchants, out)
	}
	if live && strings.HasPrefix(c.PublicURL, "http://") {
		l.httpURL("public_url", c.PublicURL, true)
	}
}

func (l *loader) account(at string, s *accountSettings) Account {
	a := Account{
		ID: s.ID, Channel: s.Channel, Environment: payonce.Environment(s.Environment), BaseURL: strings.TrimRight(s.BaseURL, "/"),
		TrustedDate: s.TrustedDate, Paused: s.Paused, PublishableKey: s.PublishableKey,
	}
	if !validID(a.ID, maxID) {
		l.add("%s.id: must be 1 to %d of A-Z a-z 0-9 _ -", at, maxID)
	}
	if p := channelProblem(s.Channel); p != "" {
		l.add("%s.channel: %s", at, p)
	}
	live := a.Environment == payonce.Live
	if !live && a.Environment != payonce.Test {
		l.add("%s.environment: must be test or live", at)
	}
	if a.BaseURL != "" {
		address, _, _ := strings.Cut(a.BaseURL, "?") // a query goes along with every call
		l.httpURL(at+".base_url", address, live)
	}
	switch s.Channel {
	case "stripe":
		a.SecretKey = l.required(at, "secret_key", s.SecretKey, s.SecretKeyFile)
		a.WebhookSecret = l.required(at, "webhook_secret", s.WebhookSecret, s.WebhookSecretFile)
		l.keyEnvironment(at+".secret_key", a.SecretKey.Reveal(), live)
		l.keyEnvironment(at+".publishable_key", a.PublishableKey, live)
	case "alipay":
		l.alipay(at, &a, s)
	}
	l.strangers(at, s)
	return a
}

// alipay reads the members of an Alipay account: public-key mode, or the three
// certificates of certificate mode.
func (l *loader) alipay(at string, a *Account, s *accountSettings) {
	a.AppID, a.SellerID = s.AppID, s.SellerID
	for name, v := range map[string]string{"app_id": s.AppID, "seller_id": s.SellerID} {
		if v == "" {
			l.add("%s.%s: required", at, name)
		}
	}
	a.AppPrivateKey = l.required(at, "app_private_key", s.AppPrivateKey, s.AppPrivateKeyFile)
	if s.AppCert == nil && s.AppCertFile == nil {
		a.AlipayPublicKey = l.required(at, "alipay_public_key", s.AlipayPublicKey, s.AlipayPublicKeyFile)
		return
	}
	a.AppCert = l.required(at, "app_cert", s.AppCert, s.AppCertFile)
	a.AlipayCert = l.required(at, "alipay_cert", s.AlipayCert, s.AlipayCertFile)
	a.RootCert = l.required(at, "alipay_root_cert", s.RootCert, s.RootCertFile)
}

// strangers refuses members of another channel: they are a mistake of copying.
func (l *loader) strangers(at string, s *accountSettings) {
	stripes := s.SecretKey != nil || s.SecretKeyFile != nil || s.WebhookSecret != nil || s.WebhookSecretFile != nil || s.PublishableKey != ""
	alipays := s.AppID != "" || s.SellerID != "" || s.AppPrivateKey != nil || s.AppPrivateKeyFile != nil
	switch {
	case s.Channel == "stripe" && alipays:
		l.add("%s: has members of an alipay account, but its channel is stripe", at)
	case s.Channel == "alipay" && stripes:
		l.add("%s: has members of a stripe account, but its channel is alipay", at)
	}
}

func (l *loader) required(at, name string, value *Secret, file *string) Secret {
	before := len(l.problems)
	secret, ok := l.secret(at, name, value, file, l.dir)
	if !ok && len(l.problems) == before {
		l.add("%s.%s: required (or %s_file)", at, name, name)
	}
	return secret
}

// keyEnvironment compares the environment in a key's prefix with the account's:
// a live key in a test account would take real money for a rehearsal.
func (l *loader) keyEnvironment(at, key string, live bool) {
	_, rest, ok := strings.Cut(key, "_")
	if !ok {
		return
	}
	switch {
	case live && strings.HasPrefix(rest, "test_"):
		l.add("%s: is a test key, but the account's environment is live", at)
	case !live && strings.HasPrefix(rest, "live_"):
		l.add("%s: is a live key, but the account's environment is test", at)
	}
}

// channelProblem says what is wrong with a channel's name, "" when nothing is.
func channelProblem(name string) string {
	switch name {
	case "stripe", "alipay":
		return ""
	case "wechatpay", "2c2p":
		return name + " is not built into this version; stripe and alipay are"
	case "":
		return "required; this version has stripe and alipay"
	}
	return "unknown channel" + suggest(name, []string{"stripe", "alipay", "wechatpay", "2c2p"})
}

func validID(s string, limit int) bool {
	if len(s) < 1 || len(s) > limit {
		return false
	}
	for _, r := range s {
		if !idLetter(r) {
			return false
		}
	}
	return true
}

func idLetter(r rune) bool {
	return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

func index(at string, i int) string { return at + "[" + strconv.Itoa(i) + "]" }
