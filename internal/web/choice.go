package web

import (
	"slices"

	"github.com/payonce/payonce"
)

// Choice is one way to pay that a page offers.
type Choice struct {
	Channel       string
	Method        string
	Account       string
	PaymentMethod string // the channel's name of a test card, "" where the channel asks the payer itself
	Label         string // key of a text
	// Currencies that can be paid this way; nil: any.
	Currencies []payonce.Currency
}

func (c Choice) id() string { return c.Account + "." + c.Method + "." + c.PaymentMethod }

// Labels of choices.
const (
	LabelCardPays           = "card-pays"
	LabelCardDeclined       = "card-declined"
	LabelCardAuthentication = "card-authentication"
	LabelOnline             = "pay-online"
)

// methodOrder is the order in which an account's ways to pay are offered. The
// first is what a page proposes, so it must not change between two looks.
var methodOrder = []string{"card", "qr", "native", "page", "redirect", "checkout", "wap", "h5", "jsapi", "app"}

func methodRank(method string) int {
	if i := slices.Index(methodOrder, method); i >= 0 {
		return i
	}
	return len(methodOrder)
}

// choices lists the ways to pay this order, always in the same order: accounts
// as they are configured, an account's methods by methodOrder. A way that is
// only called online gets its own name where we have one.
func (p *pages) choices(o *payonce.Order) []Choice {
	var out []Choice
	accounts := map[string]int{}
	for _, c := range p.Choices(o.Key) {
		if c.Currencies != nil && !slices.Contains(c.Currencies, o.Currency) {
			continue
		}
		if name := c.Channel + "-" + c.Method; c.Label == LabelOnline && texts[name] != [2]string{} {
			c.Label = name
		}
		if _, ok := accounts[c.Account]; !ok {
			accounts[c.Account] = len(accounts)
		}
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(a, b Choice) int {
		if d := accounts[a.Account] - accounts[b.Account]; d != 0 {
			return d
		}
		return methodRank(a.Method) - methodRank(b.Method)
	})
	return out
}
