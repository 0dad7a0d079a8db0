package payonce_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
)

func TestValidate_OrderNoAndPart(t *testing.T) {
	for s, want := range map[string]bool{
		"a": true, "A-Z_09": true, strings.Repeat("x", 64): true, "-": true, "_": true,
		"": false, strings.Repeat("x", 65): false, "a b": false, "a.b": false, "a/b": false, "é": false, "a\x00": false, "a\n": false,
		"订单": false, "a:b": false, "\xff": false,
	} {
		if payonce.ValidOrderNo(s) != want || payonce.ValidPart(s) != want {
			t.Errorf("%q: valid is %t", s, !want)
		}
	}
	for c := range 256 {
		want := strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", byte(c)) >= 0
		if got := payonce.ValidOrderNo(string([]byte{byte(c)})); got != want {
			t.Errorf("byte %d: valid is %t", c, got)
		}
	}
}

func TestValidate_Subject(t *testing.T) {
	for s, want := range map[string]bool{
		"x": true, "Tea for two": true, "茶叶 🍵": true, strings.Repeat("茶", 127): true,
		"": false, strings.Repeat("茶", 128): false, "a\nb": false, "a\x00": false, "a\x7f": false, "a\u0085": false, "\xff": false, "ok\xc3": false,
	} {
		if payonce.ValidSubject(s) != want {
			t.Errorf("%q: valid is %t", s, !want)
		}
	}
}

func TestOrder_ChargeableTable(t *testing.T) {
	at := t0
	for _, v := range []struct {
		status  payonce.OrderStatus
		expires time.Time
		want    bool
	}{
		{payonce.OrderOpen, time.Time{}, true}, {payonce.OrderPartiallyPaid, time.Time{}, true},
		{payonce.OrderPaid, time.Time{}, false}, {payonce.OrderClosing, time.Time{}, false}, {payonce.OrderClosed, time.Time{}, false}, {"", time.Time{}, false},
		{payonce.OrderOpen, at.Add(1), true}, {payonce.OrderOpen, at, false}, {payonce.OrderOpen, at.Add(-1), false}, {payonce.OrderPartiallyPaid, at, false},
	} {
		o := payonce.Order{Status: v.status, ExpiresAt: v.expires}
		if o.Chargeable(at) != v.want {
			t.Errorf("%s until %v: chargeable is %t", v.status, v.expires, !v.want)
		}
	}
}

func TestError_SaysCodeDetailAndCause(t *testing.T) {
	cause := errors.New("cause")
	e := payonce.Errorf(payonce.CodeOrderClosed, "order %s", "7")
	e.Err = cause
	if e.Error() != "order-closed: order 7: cause" || !errors.Is(e, cause) {
		t.Errorf("%q", e.Error())
	}
	if bare := (&payonce.Error{Code: payonce.CodeInternal}).Error(); bare != "internal" {
		t.Errorf("%q", bare)
	}
	i := payonce.Invalid("/amount", "is %d", 0)
	if i.Code != payonce.CodeInvalidRequest || len(i.Fields) != 1 || i.Fields[0] != (payonce.Field{Pointer: "/amount", Message: "is 0"}) || i.Detail != "is 0" {
		t.Errorf("%+v", i)
	}
}

func TestFactKind_NamesAreDistinctAndDefaultToUnknown(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range kinds {
		if seen[k.String()] || k != payonce.StateUnknown && k.String() == "unknown" {
			t.Errorf("kind %d is called %q", k, k)
		}
		seen[k.String()] = true
	}
	if payonce.FactKind(200).String() != "unknown" || (payonce.Fact{}).Kind != payonce.StateUnknown {
		t.Error("what is not classified is not unknown")
	}
}
