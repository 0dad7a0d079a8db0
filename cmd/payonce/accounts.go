package main

import (
	"fmt"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/channel/alipay"
	"github.com/payonce/payonce/channel/stripe"
	"github.com/payonce/payonce/cmd/payonce/internal/config"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/web"
)

// adapters names the constructor of each channel.
var adapters = map[string]func(config.Account) (channel.Adapter, error){
	"stripe": func(a config.Account) (channel.Adapter, error) {
		return stripe.New(stripe.Config{
			Account: a.ID, Environment: a.Environment, SecretKey: a.SecretKey.Reveal(), PublishableKey: a.PublishableKey,
			WebhookSecrets: []string{a.WebhookSecret.Reveal()}, BaseURL: a.BaseURL, TrustedDate: a.TrustedDate,
		})
	},
	"alipay": func(a config.Account) (channel.Adapter, error) {
		return alipay.New(alipay.Config{
			Account: a.ID, Environment: a.Environment, AppID: a.AppID, SellerID: a.SellerID, AppPrivateKey: a.AppPrivateKey.Reveal(),
			AlipayPublicKey: a.AlipayPublicKey.Reveal(), AppCert: a.AppCert.Reveal(), AlipayCert: a.AlipayCert.Reveal(), RootCert: a.RootCert.Reveal(),
			BaseURL: a.BaseURL, TrustedDate: a.TrustedDate,
		})
	},
}

// openAccounts makes the adapters of all configured accounts.
func openAccounts(c *config.Config) ([]engine.Account, error) {
	var out []engine.Account
	for _, m := range c.Merchants {
		for _, a := range m.Accounts {
			open, ok := adapters[a.Channel]
			if !ok {
				return nil, fmt.Errorf("account %s: channel %s is not built into this version", a.ID, a.Channel)
			}
			adapter, err := open(a)
			if err != nil {
				return nil, err
			}
			out = append(out, engine.Account{ID: a.ID, Channel: a.Channel, Merchant: m.ID, Environment: a.Environment,
				Paused: a.Paused, TrustedDate: a.TrustedDate, Adapter: adapter})
		}
	}
	return out, nil
}

// choices lists what the checkout of an order may offer. A card can be typed in
// nowhere on our pages; in the test environment Stripe's test cards are offered
// by name.
func (s *service) choices(k payonce.OrderKey) []web.Choice {
	var out []web.Choice
	for i := range s.accounts {
		a := &s.accounts[i]
		if a.Merchant != k.Merchant || a.Environment != k.Environment || a.Paused {
			continue
		}
		for method := range a.Adapter.Methods() {
			switch {
			case method != stripe.MethodCard:
				out = append(out, web.Choice{Channel: a.Channel, Method: method, Account: a.ID, Label: web.LabelOnline})
			case k.Environment == payonce.Test:
				out = append(out,
					web.Choice{Channel: a.Channel, Method: method, Account: a.ID, PaymentMethod: "pm_card_visa", Label: web.LabelCardPays},
					web.Choice{Channel: a.Channel, Method: method, Account: a.ID, PaymentMethod: "pm_card_visa_chargeDeclined", Label: web.LabelCardDeclined},
					web.Choice{Channel: a.Channel, Method: method, Account: a.ID, PaymentMethod: "pm_card_authenticationRequired", Label: web.LabelCardAuthentication})
			}
		}
	}
	return out
}
