package console_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/broker"
)

// filled types a name and a password, and sends them.
func (p *page) filled(user, password string) {
	p.t.Helper()
	p.wait("document.querySelector('.login input[name=user]')")
	for field, text := range map[string]string{"user": user, "password": password} {
		p.run("document.querySelector('.login input[name=" + field + "]').value = " + quoted(text))
	}
	p.run("document.querySelector('.login button').click()")
}

func (p *page) run(script string) {
	p.t.Helper()
	if _, err := chromedp.Run(p.ctx, chromedp.Evaluate[chromedp.Void]("void ("+script+")")); err != nil {
		p.t.Fatal(err)
	}
}

// forgives forgets what the browser complained about: that a login was refused.
func (p *page) forgives() {
	p.mu.Lock()
	p.problems = nil
	p.mu.Unlock()
}

const loginPage = "document.querySelector('.login h1')"

func TestTheConsoleLeadsToTheLoginAndBack(t *testing.T) {
	t.Parallel()
	axe := axeOf(t)
	b, err := broker.Open(t.Context(), broker.Config{Properties: map[string]string{
		"listeners": "PLAINTEXT://127.0.0.1:0", "muster.store": "mem", "muster.http.listener": "127.0.0.1:0", "muster.bootstrap.user": "admin:first",
	}})
	must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	p := browser(t, b.HTTPURL())
	asked := "location.pathname + location.search === '/topics?sort=-name'"
	shown := asked + " && " + says("There is no topic yet") + " && document.querySelector('.who')?.innerText.includes('admin')"
	for _, scheme := range []string{"light", "dark"} {
		p.colours(scheme)
		p.open("/topics?sort=-name", loginPage+" && "+asked)
		p.wait("document.activeElement.name === 'user'")
		p.quiet("login-" + scheme) // Nothing was asked for before the login.
		p.accessible("login-"+scheme, axe)
		p.shoot("login-" + scheme)
		p.filled("admin", "wrong")
		p.wait(`document.querySelector('.login [role=alert]')?.innerText.includes("No user has this name and password")`)
		p.wait("document.activeElement.name === 'password' && document.activeElement.value === ''")
		p.accessible("refused-"+scheme, axe)
		p.shoot("login-refused-" + scheme)
		p.forgives()
	}
	p.filled("admin", "first")
	p.wait(shown)
	p.accessible("logged-in", axe)
	p.shoot("logged-in")
	p.open("/brokers", says("PLAINTEXT")) // The cookie is known to a page that is loaded anew.
	p.open("/topics?sort=-name", shown)
	p.run("document.querySelector('.who button').click()")
	p.wait(loginPage + " && " + asked)
	p.expected = append(p.expected, "/api/v1/events") // The stream may have been asked for at that very moment.
	p.quiet("logged-out")

	// A login that ends while a page is open leads to the login, and back to the page.
	p.filled("admin", "first")
	p.wait(shown)
	admin, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
	must(t, err)
	defer admin.Close()
	for _, m := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} {
		altered, err := kadm.NewClient(admin).AlterUserSCRAMs(t.Context(), nil, []kadm.UpsertSCRAM{{User: "admin", Mechanism: m, Iterations: 4096, Password: "second"}})
		if err == nil {
			err = altered.Error()
		}
		must(t, err)
	}
	p.wait(loginPage + " && " + asked)
	p.filled("admin", "second")
	p.wait(shown)
	p.forgives()
}
