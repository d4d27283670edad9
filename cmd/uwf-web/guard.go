package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync/atomic"
)

// guard lets in only the browser of the person who was shown the address or has signed in,
// and gives every response the headers that keep a stranger's text from being run.
//
// On this machine every path begins with a random word, and the cookie is for that path:
// cookies know no ports, so another user's server on this machine would otherwise get it.
// Elsewhere paths stay as they are, to be kept and passed on.
type guard struct {
	place
	base   string // "/word/", or "/"
	key    string // in the address, which works once
	opened atomic.Bool
	secret string // of the cookie that it is exchanged for
	form   string // the token of every form
	origin *http.CrossOriginProtection
	next   http.Handler
	door   func(http.ResponseWriter, signInPage)
	links  http.Handler // of answers, which come without the cookie; they guard themselves
}

const cookieName = "uwf-web"

// newGuard guards the pages of a server.
func newGuard(at place, random io.Reader, s *server) (*guard, error) {
	var words [4]string
	for i := range words {
		secret := make([]byte, 24)
		if _, err := io.ReadFull(random, secret); err != nil {
			return nil, fmt.Errorf("make a secret: %w", err)
		}
		words[i] = base64.RawURLEncoding.EncodeToString(secret)
	}
	g := &guard{
		place: at, base: "/" + words[0] + "/", key: words[1], form: words[2], secret: words[3],
		origin: http.NewCrossOriginProtection(),
	}
	if g.token != "" {
		g.base = "/"
	}
	g.next, g.door = s.routes(g.base, g.form), s.door
	return g, nil
}

// address is what the person opens.
func (g *guard) address() string {
	if g.token != "" {
		return g.scheme + "://" + g.host + g.base
	}
	return g.scheme + "://" + g.host + g.base + "?key=" + g.key
}

// site is the origin of the page that a request asks for.
func (g *guard) site(r *http.Request) string { return g.scheme + "://" + r.Host }

// ServeHTTP implements [http.Handler].
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range headers() {
		w.Header().Set(name, value)
	}
	switch {
	case g.links != nil && strings.HasPrefix(r.URL.Path, answerPath):
		g.links.ServeHTTP(w, r)
	case !g.hosted(r.Host): // another name leads here: DNS rebinding
		refuse(w, http.StatusMisdirectedRequest, "this is not the address of uwf web")
	case !strings.HasPrefix(r.URL.Path, g.base):
		refuse(w, http.StatusNotFound, "there is nothing here")
	case g.token != "" && (r.URL.Path == g.base+"style.css" || r.URL.Path == g.base+"icon.svg"): // of the page to sign in on
		g.next.ServeHTTP(w, r)
	case g.token == "" && r.Method == http.MethodGet && r.URL.Path == g.base && r.URL.Query().Has("key"):
		g.enter(w, r)
	case !g.known(r) && g.token != "":
		g.signIn(w, r)
	case !g.known(r):
		refuse(w, http.StatusForbidden, "open the address that uwf web has printed")
	case g.foreign(r):
		refuse(w, http.StatusForbidden, "another site asks for this, or frames it")
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		g.next.ServeHTTP(w, r)
	case r.Method == http.MethodPost:
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if g.origin.Check(r) != nil || !g.own(r) || !same(r.PostFormValue("token"), g.form) {
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

// enter exchanges the key of the address for the cookie, once: the address stays in terminals
// and histories. The browser that has the cookie may open it again.
func (g *guard) enter(w http.ResponseWriter, r *http.Request) {
	if !same(r.URL.Query().Get("key"), g.key) {
		refuse(w, http.StatusForbidden, "open the address that uwf web has printed")
		return
	}
	if !g.known(r) {
		if g.opened.Swap(true) {
			refuse(w, http.StatusForbidden, "another browser has opened this address; start uwf web again for a new one")
			return
		}
		g.know(w)
	}
	http.Redirect(w, r, g.base, http.StatusSeeOther)
}

// signIn asks for the token, and leads back to the page that was asked for. The cookie is
// not sent by a click on another site's page either; it is when that page asks once more.
func (g *guard) signIn(w http.ResponseWriter, r *http.Request) {
	p := signInPage{Missed: r.Method == http.MethodPost}
	if p.Missed {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if g.origin.Check(r) == nil && g.own(r) && same(r.PostFormValue("secret"), g.token) {
			g.know(w)
			// Never to another host, as //host would.
			http.Redirect(w, r, (&url.URL{Path: path.Clean("/" + r.URL.Path), RawQuery: r.URL.RawQuery}).String(),
				http.StatusSeeOther)
			return
		}
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="uwf web"`)
	g.door(w, p)
}

// signInPage asks for the token.
type signInPage struct {
	Missed bool // the token was wrong
}

// know gives the browser the cookie.
func (g *guard) know(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{
		Name: g.cookie(), Value: g.secret, Path: g.base,
		HttpOnly: true, Secure: g.scheme == "https", SameSite: http.SameSiteStrictMode,
	})
}

// cookie is the cookie's name: with TLS, one that no other host can set.
func (g *guard) cookie() string {
	if g.scheme == "https" {
		return "__Host-" + cookieName
	}
	return cookieName
}

// known reports whether the browser has our cookie, or a program the token.
func (g *guard) known(r *http.Request) bool {
	if given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && g.token != "" {
		return same(given, g.token)
	}
	cookie, err := r.Cookie(g.cookie())
	return err == nil && same(cookie.Value, g.secret)
}

// foreign reports whether the browser says that another site, or another port of this
// machine, asks, or that the answer would be shown within a page. The cookie is not sent
// then; a browser that sends it anyway gets nothing.
func (g *guard) foreign(r *http.Request) bool {
	site, to, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Sec-Fetch-Dest"), r.Header.Get("Origin")
	return site != "" && site != "same-origin" && site != "none" ||
		slices.Contains([]string{"iframe", "frame", "embed", "object"}, to) ||
		origin != "" && origin != g.site(r)
}

// own reports whether the browser says that one of our pages has sent a form.
func (g *guard) own(r *http.Request) bool { return r.Header.Get("Origin") == g.site(r) }

// same compares in a time that reveals nothing, not even the lengths.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// headers go with every response.
func headers() map[string]string {
	return map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src " +
			"'self'; " +
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
