package config

import (
	"errors"
	"fmt"
	"log/slog"

	"go.yaml.in/yaml/v3"
)

// Secret is a text that must not be shown: whatever prints, logs or encodes it
// gets [secret] instead. Only Reveal gives it away.
type Secret struct{ text string }

const redacted = "[secret]"

// NewSecret hides a text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text, for the one place that needs it.
func (s Secret) Reveal() string { return s.text }

// Empty reports whether there is no secret.
func (s Secret) Empty() bool { return s.text == "" }

// String implements fmt.Stringer.
func (s Secret) String() string { return redacted }

// Format implements fmt.Formatter, so that no verb prints the text.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler; JSON and YAML use it too.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Secret) UnmarshalText(b []byte) error {
	s.text = string(b)
	return nil
}

// UnmarshalYAML takes any scalar as it is written; its error never repeats the
// value.
func (s *Secret) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return errors.New("must be a text")
	}
	s.text = n.Value
	return nil
}
