package payonce_test

import (
	"slices"
	"testing"
	"time"

	"github.com/payonce/payonce"
)

// chain makes an order's audit entries in six transactions.
func chain() (*payonce.Order, []payonce.AuditEntry, [][16]byte) {
	o := &payonce.Order{ID: "ord_1"}
	var entries []payonce.AuditEntry
	var salts [][16]byte
	for tx := range 6 {
		changes := []payonce.Change{
			{PaymentID: "pay_1", From: "CREATED", To: "PROCESSING", Cause: "permit"},
			{PaymentID: "pay_1", From: "PROCESSING", To: "SUCCEEDED", Cause: "begin", EvidenceID: "evd_1"},
		}
		salt := [16]byte{byte(tx + 1)}
		for _, e := range o.Chain(changes, "request", salt, t0.Add(time.Duration(tx)*time.Second)) {
			entries, salts = append(entries, e), append(salts, salt)
		}
	}
	return o, entries, salts
}

// holds walks the chain as an audit does: each entry follows the one before it,
// and the last is the order's head.
func holds(o *payonce.Order, entries []payonce.AuditEntry, salts [][16]byte) bool {
	var prev [32]byte
	for i := range entries {
		if entries[i].N != int64(i+1) || !payonce.VerifyAudit(prev, salts[i], &entries[i]) {
			return false
		}
		prev = entries[i].Hash
	}
	return int64(len(entries)) == o.AuditLength && prev == o.AuditHead
}

func TestAudit_ChainHolds(t *testing.T) {
	if o, e, s := chain(); !holds(o, e, s) || len(e) != 6 {
		t.Fatal("an untouched chain does not hold")
	}
	if o := (&payonce.Order{ID: "ord_1"}); !holds(o, nil, nil) || o.Chain(nil, "x", [16]byte{}, t0) == nil && o.AuditLength != 0 {
		t.Fatal("an empty chain does not hold")
	}
}

// TestAudit_EveryTamperingIsFound: changed, dropped, inserted, swapped, cut off.
func TestAudit_EveryTamperingIsFound(t *testing.T) {
	for name, tamper := range map[string]func(o *payonce.Order, e *[]payonce.AuditEntry, s *[][16]byte){
		"order":           func(_ *payonce.Order, e *[]payonce.AuditEntry, _ *[][16]byte) { (*e)[2].OrderID = "ord_2" },
		"number":          func(_ *payonce.Order, e *[]payonce.AuditEntry, _ *[][16]byte) { (*e)[2].N = 9 },
		"time":            func(_ *payonce.Order, e *[]payonce.AuditEntry, _ *[][16]byte) { (*e)[2].At = t0.Add(time.Hour) },
		"actor":           func(_ *payonce.Order, e *[]payonce.AuditEntry, _ *[][16]byte) { (*e)[2].Actor = "worker" },
		"payment":         func(_ *payonce.Order, e *[]payonce.AuditEntry, _ *[][16]byte) { (*e)[2].Changes[0].PaymentID = "pay_2" },
		"from":            func(_ *payonce.Order, e *[]payonce.AuditEntry, _ *[][16]byte) { (*e)[2].Changes[0].From = "" },
		"to":              func(_ *payonce.Order, e *[]payonce.AuditEntry, _ *[][16]byte) { (*e)[2].Changes[0].To = "FAILED" },
		"cause":           func(_ *payonce.Order, e *[]payonce.AuditEntry, _ *[][16]byte) { (*e)[2].Changes[0].Cause = "x" },
		"evidence":        func(_ *payonce.Order, e *[]payonce.AuditEntry, _ *[][16]byte) { (*e)[2].Changes[0].EvidenceID = "x" },
		"second":          func(_ *payonce.Order, e *[]payonce.AuditEntry, _ *[][16]byte) { (*e)[2].Changes[1].To = "FAILED" },
		"cut change":      func(_ *payonce.Order, e *[]payonce.AuditEntry, _ *[][16]byte) { (*e)[2].Changes = (*e)[2].Changes[:1] },
		"swapped changes": func(_ *payonce.Order, e *[]payonce.AuditEntry, _ *[][16]byte) { slices.Reverse((*e)[2].Changes) },
		"moved border": func(_ *payonce.Order, e *[]payonce.AuditEntry, _ *[][16]byte) {
			(*e)[2].Changes[0].From, (*e)[2].Changes[0].To = "CREATE", "DPROCESSING"
		},
		"salt":  func(_ *payonce.Order, _ *[]payonce.AuditEntry, s *[][16]byte) { (*s)[2][0]++ },
		"hash":  func(_ *payonce.Order, e *[]payonce.AuditEntry, _ *[][16]byte) { (*e)[2].Hash[0]++ },
		"first": func(_ *payonce.Order, e *[]payonce.AuditEntry, s *[][16]byte) { drop(e, s, 0) },
		"inner": func(_ *payonce.Order, e *[]payonce.AuditEntry, s *[][16]byte) { drop(e, s, 3) },
		"last":  func(_ *payonce.Order, e *[]payonce.AuditEntry, s *[][16]byte) { drop(e, s, 5) },
		"inner, renumbered": func(_ *payonce.Order, e *[]payonce.AuditEntry, s *[][16]byte) {
			drop(e, s, 3)
			for i := range *e {
				(*e)[i].N = int64(i + 1)
			}
		},
		"inserted": func(_ *payonce.Order, e *[]payonce.AuditEntry, s *[][16]byte) {
			*e, *s = slices.Insert(*e, 2, (*e)[2]), slices.Insert(*s, 2, (*s)[2])
		},
		"swapped": func(_ *payonce.Order, e *[]payonce.AuditEntry, _ *[][16]byte) { (*e)[1], (*e)[2] = (*e)[2], (*e)[1] },
		"head":    func(o *payonce.Order, _ *[]payonce.AuditEntry, _ *[][16]byte) { o.AuditHead[31]++ },
		"length":  func(o *payonce.Order, _ *[]payonce.AuditEntry, _ *[][16]byte) { o.AuditLength++ },
	} {
		o, e, s := chain()
		tamper(o, &e, &s)
		if holds(o, e, s) {
			t.Errorf("%s: the chain holds although it was changed", name)
		}
	}
}

func drop(e *[]payonce.AuditEntry, s *[][16]byte, i int) {
	*e, *s = slices.Delete(*e, i, i+1), slices.Delete(*s, i, i+1)
}

// TestAudit_WritersCanTellTheirEntries: after a lost COMMIT a writer knows its own
// entry by the salt.
func TestAudit_WritersCanTellTheirEntries(t *testing.T) {
	change := []payonce.Change{{PaymentID: "pay_1", To: "CREATED", Cause: "intent"}}
	a, b := &payonce.Order{ID: "ord_1"}, &payonce.Order{ID: "ord_1"}
	a.Chain(change, "request", [16]byte{1}, t0)
	b.Chain(change, "request", [16]byte{2}, t0)
	if a.AuditHead == b.AuditHead {
		t.Error("two writers made the same entry")
	}
}
