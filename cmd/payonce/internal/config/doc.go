// Package config reads the settings of the service: a YAML file, then the
// environment, which wins over the file, which wins over the defaults.
//
// Reading is strict. A setting that is not known is refused with a suggestion,
// a wrong value is refused with the path of its member
// (merchants[0].accounts[1].secret_key), and every problem of a file is told at
// once. A secret may stand in the file or in a file of its own whose name ends
// in _file; it is held in a type that prints as [secret].
//
// The package must not know what a setting is used for: it opens no database,
// no socket, and calls no channel.
package config

import (
	"time"

	"github.com/payonce/payonce"
)

// Config is what the service runs with. Load has checked every member.
type Config struct {
	Addr         string // of the API, host:port
	AdminAddr    string // of metrics and profiles, host:port
	PublicURL    string // under which payers and channels reach the API, without a slash at the end
	DatabaseURL  Secret // sqlite:///path, postgres://… or mysql://…
	NodeID       string // names this process among those of the installation
	StateDir     string // where the lock of the node id lies
	Worker       bool   // run the loops beside the API
	AnswerWithin time.Duration
	CallTimeout  time.Duration
	DocsURL      string // start of the type member of problems
	// FingerprintSecrets sign request fingerprints; the first signs new ones.
	// Empty: one is derived from the installation id.
	FingerprintSecrets []FingerprintSecret
	Merchants          []Merchant
}

// FingerprintSecret is a secret with the id that records are stored under.
type FingerprintSecret struct {
	ID     string
	Secret Secret
}

// Merchant is a tenant.
type Merchant struct {
	ID       string
	Surplus  string // auto or review
	Accounts []Account
}

// Account is one channel account. Members from SecretKey to
// WebhookSecret are Stripe's.
type Account struct {
	ID          string
	Channel     string
	Environment payonce.Environment
	BaseURL     string // "" is the channel's own address
	TrustedDate bool
	Paused      bool

	SecretKey      Secret
	PublishableKey string
	WebhookSecret  Secret

	// Alipay's. Either AlipayPublicKey, or the three certificates.
	AppID, SellerID               string
	AppPrivateKey                 Secret
	AlipayPublicKey               Secret
	AppCert, AlipayCert, RootCert Secret
}

// Defaults of settings that may be left out.
const (
	DefaultAddr         = "127.0.0.1:8080"
	DefaultAdminAddr    = "127.0.0.1:8081"
	DefaultAnswerWithin = 20 * time.Second
	DefaultCallTimeout  = 45 * time.Second
	DefaultDocsURL      = "https://github.com/payonce/payonce/blob/main/docs/errors.md"
)
