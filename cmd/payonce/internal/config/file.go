package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// settings is what a file or the environment may say. nil means: not said.
type settings struct {
	Addr            *string        `yaml:"addr" env:"ADDR"`
	AdminAddr       *string        `yaml:"admin_addr" env:"ADMIN_ADDR"`
	PublicURL       *string        `yaml:"public_url" env:"PUBLIC_URL"`
	DatabaseURL     *Secret        `yaml:"database_url" env:"DATABASE_URL"`
	DatabaseURLFile *string        `yaml:"database_url_file" env:"DATABASE_URL_FILE"`
	NodeID          *string        `yaml:"node_id" env:"NODE_ID"`
	StateDir        *string        `yaml:"state_dir" env:"STATE_DIR"`
	Worker          *bool          `yaml:"worker" env:"WORKER"`
	AnswerWithin    *time.Duration `yaml:"answer_within" env:"ANSWER_WITHIN"`
	CallTimeout     *time.Duration `yaml:"call_timeout" env:"CALL_TIMEOUT"`
	DocsURL         *string        `yaml:"docs_url" env:"DOCS_URL"`

	FingerprintSecrets []fingerprintSettings `yaml:"fingerprint_secrets" env:"-"`
	Merchants          []merchantSettings    `yaml:"merchants" env:"-"`
}

type fingerprintSettings struct {
	ID         string  `yaml:"id"`
	Secret     *Secret `yaml:"secret"`
	SecretFile *string `yaml:"secret_file"`
}

type merchantSettings struct {
	ID       string            `yaml:"id"`
	Surplus  string            `yaml:"surplus"`
	Accounts []accountSettings `yaml:"accounts"`
}

type accountSettings struct {
	ID          string `yaml:"id"`
	Channel     string `yaml:"channel"`
	Environment string `yaml:"environment"`
	BaseURL     string `yaml:"base_url"`
	TrustedDate bool   `yaml:"trusted_date"`
	Paused      bool   `yaml:"paused"`

	SecretKey         *Secret `yaml:"secret_key"`
	SecretKeyFile     *string `yaml:"secret_key_file"`
	PublishableKey    string  `yaml:"publishable_key"`
	WebhookSecret     *Secret `yaml:"webhook_secret"`
	WebhookSecretFile *string `yaml:"webhook_secret_file"`

	AppID               string  `yaml:"app_id"`
	SellerID            string  `yaml:"seller_id"`
	AppPrivateKey       *Secret `yaml:"app_private_key"`
	AppPrivateKeyFile   *string `yaml:"app_private_key_file"`
	AlipayPublicKey     *Secret `yaml:"alipay_public_key"`
	AlipayPublicKeyFile *string `yaml:"alipay_public_key_file"`
	AppCert             *Secret `yaml:"app_cert"`
	AppCertFile         *string `yaml:"app_cert_file"`
	AlipayCert          *Secret `yaml:"alipay_cert"`
	AlipayCertFile      *string `yaml:"alipay_cert_file"`
	RootCert            *Secret `yaml:"alipay_root_cert"`
	RootCertFile        *string `yaml:"alipay_root_cert_file"`
}

// maxFile bounds a configuration file and a file with a secret.
const maxFile = 1 << 20

// readFile reads a YAML file strictly. Problems name the line and the path of
// the member.
func (l *loader) readFile(path string) (settings, bool) {
	var s settings
	raw, err := readLimited(path)
	if err != nil {
		l.add("%s", fileError(path, err))
		return s, false
	}
	l.dir = filepath.Dir(path)
	var root yaml.Node
	if err := yaml.Unmarshal(raw, &root); err != nil {
		l.add("%s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
		return s, false
	}
	if len(root.Content) == 0 {
		return s, true // an empty file says nothing
	}
	before := len(l.problems)
	l.checkMembers(path, root.Content[0], reflect.TypeFor[settings](), "")
	if len(l.problems) > before {
		return s, false
	}
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(&s); err != nil {
		var te *yaml.TypeError
		if errors.As(err, &te) {
			for _, line := range te.Errors {
				l.add("%s: %s", path, strings.Replace(line, "time.Duration", "a duration with its unit, like 20s", 1))
			}
		} else {
			l.add("%s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
		}
		return s, false
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		l.add("%s: holds more than one YAML document", path)
		return s, false
	}
	if s.hasInlineSecret() {
		l.warnIfShared(path)
	}
	return s, true
}

// checkMembers refuses members that the type does not have. The decoder would
// refuse them too, but without the path and without a suggestion.
func (l *loader) checkMembers(file string, n *yaml.Node, t reflect.Type, at string) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode:
		for i, item := range n.Content {
			l.checkMembers(file, item, t.Elem(), fmt.Sprintf("%s[%d]", at, i))
		}
	case t.Kind() == reflect.Struct && n.Kind == yaml.MappingNode && t != reflect.TypeFor[Secret]():
		if t == reflect.TypeFor[accountSettings]() && !l.channelBuilt(file, n, at) {
			return
		}
		types, names := members(t)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if key.Value == "<<" {
				l.checkMembers(file, value, t, at)
				continue
			}
			mt, ok := types[key.Value]
			if !ok {
				l.add("%s:%d: %s: unknown setting%s", file, key.Line, join(at, key.Value), suggest(key.Value, names))
				continue
			}
			l.checkMembers(file, value, mt, join(at, key.Value))
		}
	}
}

// channelBuilt looks at an account's channel before its members: those of a
// channel that this version lacks would only be called unknown.
func (l *loader) channelBuilt(file string, n *yaml.Node, at string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != "channel" {
			continue
		}
		if p := channelProblem(n.Content[i+1].Value); p != "" {
			l.add("%s:%d: %s: %s", file, n.Content[i+1].Line, join(at, "channel"), p)
			return false
		}
	}
	return true
}

func members(t reflect.Type) (map[string]reflect.Type, []string) {
	types := make(map[string]reflect.Type, t.NumField())
	names := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("yaml")
		types[name] = f.Type
		names = append(names, name)
	}
	return types, names
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

func (s *settings) hasInlineSecret() bool {
	if s.DatabaseURL != nil {
		return true
	}
	for _, f := range s.FingerprintSecrets {
		if f.Secret != nil {
			return true
		}
	}
	for _, m := range s.Merchants {
		for _, a := range m.Accounts {
			if a.SecretKey != nil || a.WebhookSecret != nil || a.AppPrivateKey != nil {
				return true
			}
		}
	}
	return false
}

// secret returns the value of a pair name / name_file; ok is false when neither
// is set or the file could not be read, which has then been told.
func (l *loader) secret(at, name string, value *Secret, file *string, dir string) (Secret, bool) {
	if value != nil && file != nil {
		l.add("%s: set either %s or %s_file, not both", join(at, name), name, name)
		return Secret{}, false
	}
	if file == nil {
		if value == nil || value.Empty() {
			return Secret{}, false
		}
		return *value, true
	}
	path := *file
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	raw, err := readLimited(path)
	if err != nil {
		l.add("%s_file: %s", join(at, name), fileError(path, err))
		return Secret{}, false
	}
	l.warnIfShared(path)
	text := strings.TrimRight(string(raw), "\r\n")
	if text == "" {
		l.add("%s_file: %s is empty", join(at, name), path)
		return Secret{}, false
	}
	return NewSecret(text), true
}

func (l *loader) warnIfShared(path string) {
	info, err := os.Stat(path)
	if err == nil && sharedMode(info.Mode()) {
		l.warnings = append(l.warnings, fmt.Sprintf("%s holds a secret and can be read by other users (mode %04o); chmod 600 it", path, info.Mode().Perm()))
	}
}

func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(raw) > maxFile {
		err = fmt.Errorf("larger than %d bytes", maxFile)
	}
	return raw, err
}

func fileError(path string, err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Sprintf("cannot read %s: %v", path, err)
}
