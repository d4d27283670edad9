package config

import (
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
)

// Notify is what notify says, resolved. Printing one does not print its secrets.
type Notify struct {
	On      []string
	Command []string // nil: none is run
	Webhook string   // where notices are posted; "": nowhere
	Secret  string   // signs them; "": nothing does
	Address string   // of answer links, without a slash at its end; "": there are none
	Ends    time.Duration
}

// String says nothing: the address of a webhook is often its key.
func (n Notify) String() string { return "notify" }

// GoString is String, for %#v.
func (n Notify) GoString() string { return n.String() }

// linkExpires is how long an answer link counts, mostLinkEnds how long it can.
const (
	linkExpires  = 24 * time.Hour
	mostLinkEnds = 30 * 24 * time.Hour
)

// ResolveNotify resolves what notify says; nobody is told if it says nothing. Errors are
// *protocol.Error (code invalid) and name what is missing.
func ResolveNotify(c protocol.Config, e env.Env) (Notify, error) {
	n := c.Notify
	if n == nil {
		return Notify{}, nil
	}
	use := user{env: e}
	out := Notify{On: n.On, Ends: linkExpires}
	if len(out.On) == 0 {
		out.On = notices()
	}
	for _, word := range n.Command {
		out.Command = append(out.Command, use.value(word, "notify.command"))
	}
	if n.Webhook != nil {
		out.Webhook = use.value(n.Webhook.URL, "notify.webhook.url")
		out.Secret = use.value(n.Webhook.Secret, "notify.webhook.secret")
	}
	if n.Links != nil {
		out.Address = strings.TrimRight(n.Links.Address, "/")
		if n.Links.ExpiresIn != "" {
			out.Ends, _ = time.ParseDuration(n.Links.ExpiresIn) // it was checked
		}
	}
	if use.err == nil && out.Webhook != "" && !isPrivate(out.Webhook) {
		use.err = invalid(nil, "notify.webhook.url in config.yaml must begin with https://; http:// is for this machine only")
	}
	if use.err != nil {
		return Notify{}, use.err
	}
	return out, nil
}

func notices() []string {
	return []string{protocol.NoticeWaiting, protocol.NoticeError, protocol.NoticeCompleted, protocol.NoticeLimit}
}

// isPrivate reports whether nobody between here and an address can read along.
func isPrivate(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// notify checks who is told of threads that come to rest.
func (k checker) notify() {
	n := k.c.Notify
	if n == nil {
		return
	}
	for _, event := range n.On {
		if event == "" {
			k.add(k.at([]string{"notify", "on"}), "one of "+strings.Join(notices(), ", "), "notify.on has an empty text")
		}
	}
	if slices.Contains(n.Command[:min(len(n.Command), 1)], "") {
		k.add(k.at([]string{"notify", "command"}), "write a program and its arguments, word by word, such as [notify-me, --now]", "notify.command names no program")
	}
	if w := n.Webhook; w != nil {
		k.required(w.URL, "such as https://example.org/hook", "notify", "webhook", "url")
		if w.URL != "" && !hasVariable(w.URL) && !isPrivate(w.URL) {
			k.add(k.at([]string{"notify", "webhook", "url"}), "http:// is for this machine only", "notify.webhook.url must begin with https:// and a host")
		}
	}
	l := n.Links
	if l == nil {
		return
	}
	k.required(l.Address, "where a uwf web --actions can be reached, such as https://uwf.example.org", "notify", "links", "address")
	if u, err := url.Parse(l.Address); l.Address != "" && (!isPrivate(l.Address) || err != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil) {
		k.add(k.at([]string{"notify", "links", "address"}), "such as https://uwf.example.org", "notify.links.address must be https:// and a host, without a path; http:// is for this machine only")
	}
	if d, err := time.ParseDuration(l.ExpiresIn); err == nil && d > mostLinkEnds {
		k.add(k.at([]string{"notify", "links", "expiresIn"}), "at most 720h", "notify.links.expiresIn is too long")
	}
}
