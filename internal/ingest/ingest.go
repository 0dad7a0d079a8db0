// Package ingest takes the channels' notices in: raw bytes and headers, verified
// with the account's key, then stored and applied in one transaction. Nothing is
// acknowledged before it is stored, nothing that is not genuine changes a state.
//
// It must not know what a notice means for a payment.
package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/internal/engine"
)

// MaxBody bounds the body of a notice.
const MaxBody = 256 << 10

// ErrNoAccount: the address names no account, or not exactly one.
var ErrNoAccount = errors.New("no such account")

// Config is what an inbox is made of.
type Config struct {
	Accounts []engine.Account
	Engine   Engine
	Logger   *slog.Logger
	// Observe is told of outcomes: stored, duplicate, parked, refused, not-stored.
	Observe func(channel, outcome string)
}

// Engine stores and applies a verified notice; *engine.Engine is one.
type Engine interface {
	Notice(ctx context.Context, account string, n channel.Notice, headers string, body []byte) (engine.NoticeResult, error)
}

// Inbox receives notices for all accounts of a process.
type Inbox struct{ Config }

// New returns an inbox.
func New(c Config) *Inbox {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Observe == nil {
		c.Observe = func(string, string) {}
	}
	return &Inbox{c}
}

// Account finds the account that an address names: by channel and id, or by the
// channel alone where exactly one account exists.
func (i *Inbox) Account(ch, id string) (*engine.Account, error) {
	var found *engine.Account
	for k := range i.Accounts {
		a := &i.Accounts[k]
		if a.Channel != ch || (id != "" && a.ID != id) {
			continue
		}
		if found != nil {
			return nil, ErrNoAccount
		}
		found = a
	}
	if found == nil {
		return nil, ErrNoAccount
	}
	return found, nil
}

// Receive verifies and stores one notice and returns the channel's own answer.
func (i *Inbox) Receive(ctx context.Context, a *engine.Account, h http.Header, body []byte) channel.NoticeReply {
	n, err := a.Adapter.ReadNotice(h, body)
	if err != nil {
		i.Logger.Warn("notice refused", "channel", a.Channel, "account", a.ID, "error", err)
		i.Observe(a.Channel, "refused")
		return a.Adapter.ReplyNotice(channel.NoticeRefused)
	}
	result, err := i.Engine.Notice(ctx, a.ID, n, headersOf(h), body)
	if err != nil {
		i.Logger.Error("notice not stored", "channel", a.Channel, "account", a.ID, "error", err)
		i.Observe(a.Channel, "not-stored")
		return a.Adapter.ReplyNotice(channel.NoticeNotStored)
	}
	i.Observe(a.Channel, map[engine.NoticeResult]string{engine.NoticeApplied: "stored", engine.NoticeDuplicate: "duplicate", engine.NoticeParked: "parked"}[result])
	return a.Adapter.ReplyNotice(channel.NoticeStored)
}

// Refuse returns the channel's own refusal for bytes that were not even read.
func (i *Inbox) Refuse(a *engine.Account) channel.NoticeReply {
	i.Observe(a.Channel, "refused")
	return a.Adapter.ReplyNotice(channel.NoticeRefused)
}

// headersOf keeps the header lines that prove a notice, for the evidence.
func headersOf(h http.Header) string {
	keep := map[string][]string{}
	for _, name := range []string{"Content-Type", "Stripe-Signature", "Wechatpay-Serial", "Wechatpay-Signature", "Wechatpay-Timestamp", "Wechatpay-Nonce"} {
		if v := h.Values(name); len(v) > 0 {
			keep[name] = v
		}
	}
	b, _ := json.Marshal(keep) // strings always marshal
	return string(b)
}
