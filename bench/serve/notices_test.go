package main

import (
	"testing"

	"github.com/payonce/payonce"
)

// TestSignedNoticesAreGenuine: the adapter under measurement takes what the
// sender signs for what it is, and takes nothing of another sender.
func TestSignedNoticesAreGenuine(t *testing.T) {
	ours, err := newSender()
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := newSender()
	if err != nil {
		t.Fatal(err)
	}
	p := payonce.Payment{Number: "0A1B2C3D4E5F6G7H8J9K", Amount: noticeAmount, Currency: "CNY"}
	ids := map[string]bool{}
	for i := range 2 {
		body, err := ours.notice(&p, i)
		if err != nil {
			t.Fatal(err)
		}
		n, err := ours.account.Adapter.ReadNotice(nil, []byte(body))
		if err != nil || n.Number != p.Number || n.Fact.Kind != payonce.StateSettled || n.Fact.Amount != p.Amount {
			t.Errorf("notice %d is read as %+v, %v", i, n, err)
		}
		ids[n.EventID+n.Fact.PaymentRef] = true
		if _, err := stranger.account.Adapter.ReadNotice(nil, []byte(body)); err == nil {
			t.Errorf("notice %d is taken by another account", i)
		}
	}
	if len(ids) != 2 {
		t.Errorf("two notices have %d ids", len(ids))
	}
}
