package main

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/bench/internal/books"
	"github.com/payonce/payonce/channel"
)

// account is a channel account inside the process. A charge is one step and is
// settled when its delay is over; the same number is charged once more each time
// that it is asked for, as a channel without any protection would.
type account struct {
	id    string
	delay time.Duration
	books *books.Books

	mu      sync.Mutex
	charged map[string]string // payment reference by number, kept only where Each is
}

var _ channel.Adapter = (*account)(nil)

func newAccount(id string, delay time.Duration, b *books.Books) *account {
	return &account{id: id, delay: delay, books: b, charged: map[string]string{}}
}

// Account implements channel.Adapter.
func (a *account) Account() string { return a.id }

// Methods implements channel.Adapter.
func (a *account) Methods() map[string]channel.Capabilities { return methods }

var methods = map[string]channel.Capabilities{"card": {Life: time.Hour, DedupeWindow: 24 * time.Hour}}

// Compose implements channel.Adapter.
func (a *account) Compose(i channel.Intent) ([]byte, error) {
	return []byte("number=" + i.Number + "&payment_method=" + i.Payer.PaymentMethod), nil
}

// Begin implements channel.Adapter.
func (a *account) Begin(ctx context.Context, c channel.Call) channel.Answer {
	ref, err := a.books.Charge(ctx, c.Payment.Number, a.delay)
	if err != nil {
		return channel.Answer{Fact: payonce.Fact{Kind: payonce.StateUnknown, Reason: "timeout"}, Err: err}
	}
	if a.books.Each {
		a.mu.Lock()
		a.charged[c.Payment.Number] = ref
		a.mu.Unlock()
	}
	return a.settled(&c.Payment, ref)
}

func (a *account) settled(p *payonce.Payment, ref string) channel.Answer {
	return channel.Answer{
		Fact: payonce.Fact{Kind: payonce.StateSettled, Number: p.Number, Account: a.id, PaymentRef: ref, Amount: p.Amount, Currency: p.Currency},
		Raw:  []byte(`{"id":"` + ref + `","number":"` + p.Number + `","status":"succeeded"}`),
	}
}

// Query implements channel.Adapter. Without a memory of numbers it knows nothing.
func (a *account) Query(_ context.Context, c channel.Call) channel.Answer {
	a.mu.Lock()
	ref, ok := a.charged[c.Payment.Number]
	a.mu.Unlock()
	if !ok {
		return channel.Answer{Fact: payonce.Fact{Kind: payonce.StateUnknown, Number: c.Payment.Number, Reason: "not-kept"}}
	}
	return a.settled(&c.Payment, ref)
}

// Close implements channel.Adapter.
func (a *account) Close(ctx context.Context, c channel.Call) channel.Answer { return a.Query(ctx, c) }

// ReplyNotice implements channel.Adapter.
func (a *account) ReplyNotice(channel.NoticeOutcome) channel.NoticeReply {
	return channel.NoticeReply{Status: 400}
}

// ReadNotice implements channel.Adapter: this channel sends none.
func (a *account) ReadNotice(http.Header, []byte) (channel.Notice, error) {
	return channel.Notice{}, errors.New("this channel sends no notices")
}
