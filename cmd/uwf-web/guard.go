package main

import (
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
)

// guard lets nobody in but the browser of the person who was shown the address, and
// gives every answer the headers that keep a stranger's text a text.
//
// Every path begins with a random word, and the cookie is for that path: cookies know no
// ports, so that another user's server on this machine would else be sent it.
type guard struct {
	base   string // "/word/"
	key    string // in the address once, and in the cookie from then on
	token  string // in every form
	hosts  []string
	origin *http.CrossOriginProtection
	next   http.Handler
	links  http.Handler // of answers, which come without the cookie; they guard themselves
}

const cookieName = "uwf-web"

// newGuard guards what routes makes of the base path and the token of forms.
func newGuard(host string, random io.Reader, routes func(base, token string) http.Handler) (*guard, error) {
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		return nil, err
	}
	var words [3]string
	for i := range words {
		secret := make([]byte, 24)
		if _, err := io.ReadFull(random, secret); err != nil {
			return nil, fmt.Errorf("make a secret: %w", err)
		}
		words[i] = base64.RawURLEncoding.EncodeToString(secret)
	}
	g := &guard{
		base: "/" + words[0] + "/", key: words[1], token: words[2], hosts: []string{host, "localhost:" + port},
		origin: http.NewCrossOriginProtection(),
	}
	g.next = routes(g.base, g.token)
	return g, nil
}

// address is what the person opens.
func (g *guard) address() string { return "http://" + g.hosts[0] + g.base + "?key=" + g.key }

// ServeHTTP implements [http.Handler].
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range headers() {
		w.Header().Set(name, value)
	}
	switch {
	case g.links != nil && strings.HasPrefix(r.URL.Path, answerPath):
		g.links.ServeHTTP(w, r)
	case !slices.Contains(g.hosts, r.Host): // another name leads here: DNS rebinding
		refuse(w, http.StatusMisdirectedRequest, "this is not the address of uwf web")
	case !strings.HasPrefix(r.URL.Path, g.base):
		refuse(w, http.StatusNotFound, "there is nothing here")
	case r.Method == http.MethodGet && r.URL.Path == g.base && r.URL.Query().Has("key"):
		g.enter(w, r)
	case !g.known(r):
		refuse(w, http.StatusForbidden, "open the address that uwf web has printed")
	case foreign(r):
		refuse(w, http.StatusForbidden, "another site asks for this, or frames it")
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		g.next.ServeHTTP(w, r)
	case r.Method == http.MethodPost:
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if g.origin.Check(r) != nil || !g.own(r) || !same(r.PostFormValue("token"), g.token) {
			refuse(w, http.StatusForbidden, "this was not sent by a page of this uwf web; load the page again")
			return
		}
		g.next.ServeHTTP(w, r)
	default:
		refuse(w, http.StatusMethodNotAllowed, "this cannot be done")
	}
}

// maxForm bounds what a page may send.
const maxForm = 1 << 20

// enter takes the key from the address, and leads on without it.
func (g *guard) enter(w http.ResponseWriter, r *http.Request) {
	if !same(r.URL.Query().Get("key"), g.key) {
		refuse(w, http.StatusForbidden, "open the address that uwf web has printed")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: g.key, Path: g.base, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, g.base, http.StatusSeeOther)
}

func (g *guard) known(r *http.Request) bool {
	cookie, err := r.Cookie(cookieName)
	return err == nil && same(cookie.Value, g.key)
}

// foreign reports whether the browser says that another site, or another port of this
// machine, asks, or that the answer would be shown within a page. The cookie is not sent
// then; a browser that sends it all the same gets nothing.
func foreign(r *http.Request) bool {
	site, to, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Sec-Fetch-Dest"), r.Header.Get("Origin")
	return site != "" && site != "same-origin" && site != "none" ||
		slices.Contains([]string{"iframe", "frame", "embed", "object"}, to) ||
		origin != "" && origin != "http://"+r.Host
}

// own reports whether the browser says that one of our pages has sent a form.
func (g *guard) own(r *http.Request) bool {
	return r.Header.Get("Origin") == "http://"+r.Host
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// headers are those of every answer.
func headers() map[string]string {
	return map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "same-origin", // with no-referrer, a form of ours would not say where it comes from
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
		"Cache-Control":                "no-store",
	}
}

func refuse(w http.ResponseWriter, status int, why string) {
	http.Error(w, "uwf web: "+why, status)
}
