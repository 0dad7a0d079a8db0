package channeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
)

// selfSigned: an action that needs no call is made of the stored bytes alone. It
// is the same whenever and wherever it is made, ends when the payment does, and
// nothing is sent for it; bytes that were changed make none.
func (r *runner) selfSigned(t *testing.T) {
	b := r.bench(t)
	caps := b.adapter.Methods()[r.m.Intent.Method]
	if !caps.SelfSigned {
		return // the method has a begin, which the other cases look at
	}
	signer, ok := b.adapter.(channel.Signer)
	if !ok {
		t.Fatal("SelfSigned without a Signer")
	}
	if caps.Prepared || len(r.m.Says[Begin]) > 0 || len(r.m.Says[Prepare]) > 0 {
		t.Error("a self-signed method has neither prepare nor begin")
	}
	first := b.sign(signer, b.payment)
	if first.Type == "" || first.ExpiresAt.IsZero() || first.ExpiresAt.After(b.payment.DeadAt) {
		t.Errorf("the action is a %q that ends at %v, the payment at %v", first.Type, first.ExpiresAt, b.payment.DeadAt)
	}
	text, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range r.suite.Secrets {
		if strings.Contains(string(text), secret) {
			t.Error("the action shows a secret")
		}
	}
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("east", 8*3600), time.FixedZone("west", -8*3600)} {
		p := b.payment
		p.DeadAt, p.CreatedAt, p.UpdatedAt = p.DeadAt.In(zone), time.Now().In(zone), time.Now()
		again := b.sign(signer, p)
		again.ExpiresAt = again.ExpiresAt.In(first.ExpiresAt.Location())
		if got, _ := json.Marshal(again); !bytes.Equal(got, text) {
			t.Errorf("made again it is\n%s\nnot\n%s", got, text)
		}
	}
	for i := 0; i < len(b.payment.Request); i += 1 + len(b.payment.Request)/24 {
		p := b.payment
		p.Request = append(bytes.Clone(p.Request[:i]), p.Request[i+1:]...)
		if got, err := signer.Sign(p); err == nil {
			if other, _ := json.Marshal(got); bytes.Equal(other, text) {
				t.Errorf("without byte %d of the request it is the same action", i)
			}
		}
	}
	other := b.payment
	other.Number = "0000000000000000000X"
	if _, err := signer.Sign(other); err == nil {
		t.Error("another number's request was signed")
	}
	a := b.adapter.Begin(context.Background(), channel.Call{Payment: b.payment, KeyNo: 1})
	if a.Kind != payonce.StateNotSent {
		t.Errorf("begin = %s, want not-sent", a.Kind)
	}
	b.arrived(0)
}

func (b *bench) sign(s channel.Signer, p payonce.Payment) *payonce.Action {
	b.t.Helper()
	a, err := s.Sign(p)
	if err != nil || a == nil {
		b.t.Fatalf("Sign: %v", err)
	}
	return a
}
