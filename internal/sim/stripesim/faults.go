package stripesim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/payonce/payonce/internal/sim/core"
)

// CheckFault refuses faults that Stripe cannot have: its answers carry no
// signature, and only published codes exist.
func (s *Stripe) CheckFault(f *core.Fault) error {
	if f.Is(core.BadSignature) && f.Operation != core.OpNotice {
		return f.Senseless()
	}
	if f.Is(core.ErrorCode) && !knownCode(f.Arg) {
		return fmt.Errorf("%w: stripe has no error code %q", core.ErrBad, f.Arg)
	}
	return nil
}

// amounts are the members that say how much money it is.
var amounts = map[string]bool{"amount": true, "amount_received": true, "amount_capturable": true, "amount_captured": true}

// distort changes a body as wrong_amount or foreign_account wants it. What is
// stored stays right.
func distort(body []byte, f *core.Fault) []byte {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return body // HTML: there is nothing to change
	}
	if f.Is(core.WrongAmount) {
		v = wrongAmounts(v)
	} else {
		v = foreign(v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return body
	}
	return b
}

// wrongAmounts turns every amount that is not zero into 1, and 1 into 2.
func wrongAmounts(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			n, number := inner.(json.Number)
			switch {
			case !number || !amounts[name]:
				v[name] = wrongAmounts(inner)
			case n == "1":
				v[name] = json.Number("2")
			case n != "0":
				v[name] = json.Number("1")
			}
		}
	case []any:
		for n := range v {
			v[n] = wrongAmounts(v[n])
		}
	}
	return v
}

const foreignID = "acct_0000000000foreign"

// foreign makes objects of another account: live mode, on behalf of somebody
// else, and in events the account itself.
func foreign(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			v[name] = foreign(inner)
		}
		if _, is := v["livemode"]; is {
			v["livemode"] = true
		}
		if _, is := v["on_behalf_of"]; is {
			v["on_behalf_of"] = foreignID
		}
		if v["object"] == "event" {
			v["account"] = foreignID
		}
		if id, _ := v["id"].(string); strings.HasPrefix(id, "acct_") {
			v["id"] = foreignID
		}
	case []any:
		for n := range v {
			v[n] = foreign(v[n])
		}
	}
	return v
}
