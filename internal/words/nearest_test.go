package words

import "testing"

func TestTheNearestNameIsOneThatASlipWouldGive(t *testing.T) {
	known := []string{"user", "payments", "orders", "orders-eu", "auto.create.topics.enable"}
	for name, want := range map[string]string{
		"payment": "payments", "paymetns": "payments", "order": "orders", "ordres-eu": "orders-eu",
		"auto.create": "auto.create.topics.enable", "auto": "", "invoices": "", "": "",
		"usr": "user", "set": "", // Of three letters two are too many to replace.
	} {
		same(t, name, Nearest(name, known), want)
	}
	same(t, "a slip", DidYouMean("payment", known), `; did you mean "payments"?`)
	same(t, "nothing near", DidYouMean("invoices", known), "")
	same(t, "the name itself", DidYouMean("orders", known), "")
}
