package stripesim

// wireIntent is a PaymentIntent as it travels. Members that the simulator
// never fills are there as null, as Stripe sends them.
type wireIntent struct {
	ID                        string            `json:"id"`
	Object                    string            `json:"object"`
	Amount                    int64             `json:"amount"`
	AmountCapturable          int64             `json:"amount_capturable"`
	AmountDetails             any               `json:"amount_details"`
	AmountReceived            int64             `json:"amount_received"`
	Application               any               `json:"application"`
	ApplicationFeeAmount      any               `json:"application_fee_amount"`
	AutomaticPaymentMethods   any               `json:"automatic_payment_methods"`
	CanceledAt                *int64            `json:"canceled_at"`
	CancellationReason        *string           `json:"cancellation_reason"`
	CaptureMethod             string            `json:"capture_method"`
	ClientSecret              string            `json:"client_secret"`
	ConfirmationMethod        string            `json:"confirmation_method"`
	Created                   int64             `json:"created"`
	Currency                  string            `json:"currency"`
	Customer                  *string           `json:"customer"`
	CustomerAccount           any               `json:"customer_account"`
	Description               *string           `json:"description"`
	ExcludedTypes             any               `json:"excluded_payment_method_types"`
	LastPaymentError          *apiError         `json:"last_payment_error"`
	LatestCharge              any               `json:"latest_charge"`
	Livemode                  bool              `json:"livemode"`
	Metadata                  map[string]string `json:"metadata"`
	NextAction                any               `json:"next_action"`
	OnBehalfOf                any               `json:"on_behalf_of"`
	PaymentMethod             *string           `json:"payment_method"`
	MethodConfiguration       any               `json:"payment_method_configuration_details"`
	PaymentMethodOptions      any               `json:"payment_method_options"`
	PaymentMethodTypes        []string          `json:"payment_method_types"`
	Processing                any               `json:"processing"`
	ReceiptEmail              *string           `json:"receipt_email"`
	Review                    any               `json:"review"`
	SetupFutureUsage          *string           `json:"setup_future_usage"`
	Shipping                  any               `json:"shipping"`
	Source                    any               `json:"source"`
	StatementDescriptor       *string           `json:"statement_descriptor"`
	StatementDescriptorSuffix *string           `json:"statement_descriptor_suffix"`
	Status                    string            `json:"status"`
	TransferData              any               `json:"transfer_data"`
	TransferGroup             *string           `json:"transfer_group"`
}

type object = map[string]any

var cardOptions = object{"card": object{
	"installments": nil, "mandate_options": nil, "network": nil, "request_three_d_secure": "automatic"}}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func timeOrNull(t int64) *int64 {
	if t == 0 {
		return nil
	}
	return &t
}

func metadataOf(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func (s *Stripe) renderIntent(i *intent, expandCharge bool) *wireIntent {
	w := &wireIntent{
		ID: i.ID, Object: "payment_intent", Amount: i.Amount, AmountCapturable: i.Capturable,
		AmountDetails: object{"tip": object{}}, AmountReceived: i.Received,
		CanceledAt: timeOrNull(i.CanceledAt), CancellationReason: orNull(i.CancelReason),
		CaptureMethod: i.Capture, ClientSecret: i.Secret, ConfirmationMethod: i.Confirmation,
		Created: i.Created, Currency: i.Currency, Customer: orNull(i.Texts["customer"]),
		Description: orNull(i.Texts["description"]), LastPaymentError: i.LastError,
		Metadata: metadataOf(i.Metadata), PaymentMethod: orNull(i.Method),
		PaymentMethodOptions: cardOptions, PaymentMethodTypes: i.Types,
		ReceiptEmail: orNull(i.Texts["receipt_email"]), SetupFutureUsage: orNull(i.Texts["setup_future_usage"]),
		StatementDescriptor:       orNull(i.Texts["statement_descriptor"]),
		StatementDescriptorSuffix: orNull(i.Texts["statement_descriptor_suffix"]),
		Status:                    i.Status, TransferGroup: orNull(i.Texts["transfer_group"]),
	}
	if i.Automatic {
		w.AutomaticPaymentMethods = object{"allow_redirects": "always", "enabled": true}
	}
	if i.Status == requiresAction {
		w.NextAction = object{"type": "redirect_to_url",
			"redirect_to_url": object{"url": i.ActionURL, "return_url": orNull(i.ReturnURL)}}
	}
	if i.Status == processing {
		w.Processing = object{"type": "card", "card": object{}}
	}
	if i.Charge != "" {
		w.LatestCharge = i.Charge
		if expandCharge {
			w.LatestCharge = s.renderCharge(s.charges.Get(i.Charge))
		}
	}
	return w
}

func (s *Stripe) renderCharge(ch *charge) object {
	i := s.intents.Get(ch.Intent)
	network := "approved_by_network"
	if ch.Status != succeeded {
		network = "declined_by_network"
	}
	o := object{
		"id": ch.ID, "object": "charge", "amount": ch.Amount, "amount_captured": ch.Captured,
		"amount_refunded": ch.Refunded, "application": nil, "application_fee": nil, "application_fee_amount": nil,
		"balance_transaction": orNull(ch.Balance), "calculated_statement_descriptor": "PAYONCE SIM",
		"billing_details": object{"address": nil, "email": nil, "name": nil, "phone": nil},
		"captured":        ch.Taken, "created": ch.Created, "currency": ch.Currency,
		"customer": orNull(i.Texts["customer"]), "description": orNull(i.Texts["description"]), "disputed": ch.Disputed,
		"failure_balance_transaction": nil, "failure_code": orNull(ch.FailureCode),
		"failure_message": orNull(ch.FailureMessage), "fraud_details": object{}, "livemode": false,
		"metadata": metadataOf(i.Metadata), "on_behalf_of": nil,
		"outcome": object{"network_status": network, "type": "authorized", "risk_level": "normal",
			"reason": orNull(ch.DeclineCode), "seller_message": "Played by the simulator."},
		"paid": ch.Status == succeeded, "payment_intent": ch.Intent, "payment_method": orNull(ch.Method),
		"payment_method_details": object{"type": "card", "card": cardDetails(methods[ch.Method])},
		"receipt_email":          nil, "receipt_number": nil, "receipt_url": nil,
		"refunded": ch.Captured > 0 && ch.Refunded == ch.Captured || ch.Released,
		"review":   nil, "shipping": nil, "source": nil, "source_transfer": nil,
		"statement_descriptor": nil, "statement_descriptor_suffix": nil, "status": ch.Status,
		"transfer_data": nil, "transfer_group": nil,
	}
	if ch.Status != succeeded {
		o["outcome"].(object)["type"] = "issuer_declined"
	}
	return o
}

func (s *Stripe) renderRefund(r *refund) object {
	o := object{
		"id": r.ID, "object": "refund", "amount": r.Amount, "balance_transaction": r.Balance, "charge": r.Charge,
		"created": r.Created, "currency": r.Currency, "metadata": metadataOf(r.Metadata),
		"payment_intent": r.Intent, "reason": orNull(r.Reason), "receipt_number": nil,
		"source_transfer_reversal": nil, "status": r.Status, "transfer_reversal": nil,
		"destination_details": object{"type": "card", "card": object{"type": "refund", "reference_status": "pending", "reference_type": "acquirer_reference_number"}},
	}
	if r.Status == "pending" {
		o["pending_reason"] = "processing"
	}
	if r.Status == "failed" {
		o["failure_reason"] = "expired_or_canceled_card"
		o["failure_balance_transaction"] = r.FailedBalance
	}
	return o
}

func (s *Stripe) getAccount(c *call) *result {
	id := s.accountID()
	if c.id != "" && c.id != id {
		return fail(missing("account", c.id, "account"))
	}
	return ok(object{
		"id": id, "object": "account", "business_type": "company", "charges_enabled": true, "country": "SG",
		"created": 1700000000, "default_currency": "sgd", "details_submitted": true, "email": "sim@payonce.example",
		"payouts_enabled": true, "type": "standard", "metadata": object{},
		"capabilities":     object{"card_payments": "active", "transfers": "active"},
		"business_profile": object{"name": "Payonce simulator", "url": nil},
		"settings":         object{"dashboard": object{"display_name": "Payonce simulator", "timezone": "Etc/UTC"}},
	})
}
