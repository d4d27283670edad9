package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync/atomic"
)

// guard admits only the browser of the user who was shown the URL or has signed in, and sets headers on every
// response that prevent untrusted text from being executed.
//
// On this machine every path begins with a random word, and the cookie is limited to that path: cookies
// ignore ports, so another user's server on this machine would otherwise receive it. Elsewhere paths are
// stable, so they can be bookmarked and shared.
type guard struct {
	place
	base   string // "/word/", or "/"
	key    string // one-time key in the URL
	opened atomic.Bool
	secret string // value of the cookie that replaces it
	form   string // CSRF token of every form
	next   http.Handler
	door   func(w http.ResponseWriter, missed bool) error
	links  http.Handler // handles answer links, which need no cookie and have their own protection
}

const cookieName = "uwf-web"

// newGuard protects the pages of a server.
func newGuard(at place, random io.Reader, s *server) (*guard, error) {
	var words [4]string
	for i := range words {
		secret := make([]byte, 24)
		if _, err := io.ReadFull(random, secret); err != nil {
			return nil, fmt.Errorf("create secret: %w", err)
		}
		words[i] = base64.RawURLEncoding.EncodeToString(secret)
	}
	g := &guard{place: at, base: "/" + words[0] + "/", key: words[1], form: words[2], secret: words[3]}
	if g.token != "" {
		g.base = "/"
	}
	g.next, g.door = s.routes(g.base, g.form), s.door
	return g, nil
}

// address returns the URL for the user to open.
func (g *guard) address() string {
	if g.token != "" {
		return g.scheme + "://" + g.host + g.base
	}
	return g.scheme + "://" + g.host + g.base + "?key=" + g.key
}

// site returns the origin of the requested page.
func (g *guard) site(r *http.Request) string { return g.scheme + "://" + r.Host }

// ServeHTTP implements [http.Handler].
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range headers() {
		w.Header().Set(name, value)
	}
	switch {
	case g.links != nil && strings.HasPrefix(r.URL.Path, answerPath):
		g.links.ServeHTTP(w, r)
	case !g.hosted(r.Host): // another host name points here: DNS rebinding
		refuse(w, http.StatusMisdirectedRequest, "this is not the address of uwf web")
	case !strings.HasPrefix(r.URL.Path, g.base):
		refuse(w, http.StatusNotFound, "page not found")
	case g.token != "" && (r.URL.Path == g.base+"style.css" || r.URL.Path == g.base+"icon.svg"): // assets of the sign-in page
		g.next.ServeHTTP(w, r)
	case g.token == "" && r.Method == http.MethodGet && r.URL.Path == g.base && r.URL.Query().Has("key"):
		g.enter(w, r)
	case !g.known(r) && g.token != "":
		g.signIn(w, r)
	case !g.known(r):
		refuse(w, http.StatusForbidden, "open the address that uwf web printed")
	case g.foreign(r):
		refuse(w, http.StatusForbidden, "request from another site or a frame")
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		g.next.ServeHTTP(w, r)
	case r.Method == http.MethodPost:
		r = g.named(r)
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if large := new(http.MaxBytesError); errors.As(r.ParseForm(), &large) {
			refuse(w, http.StatusRequestEntityTooLarge, "the form is larger than 1 MiB")
			return
		}
		if !g.own(r) || !same(r.PostFormValue("token"), g.form) {
			refuse(w, http.StatusForbidden, "this request does not come from this uwf web; reload the page")
			return
		}
		g.next.ServeHTTP(w, r)
	default:
		refuse(w, http.StatusMethodNotAllowed, "this cannot be done")
	}
}

// maxForm bounds the size of a form.
const maxForm = 1 << 20

// enter exchanges the key in the URL for the cookie, once, because URLs stay in terminals and histories. The
// browser that has the cookie can open it again.
func (g *guard) enter(w http.ResponseWriter, r *http.Request) {
	if !same(r.URL.Query().Get("key"), g.key) {
		refuse(w, http.StatusForbidden, "open the address that uwf web printed")
		return
	}
	if !g.known(r) {
		if g.opened.Swap(true) {
			refuse(w, http.StatusForbidden, "another browser already uses this address; restart uwf web for a new "+
				"one")
			return
		}
		g.know(w, "")
	}
	http.Redirect(w, r, g.base, http.StatusSeeOther)
}

// signIn asks for the token and returns to the requested page. The SameSite cookie is not sent after a click
// on another site either, but it is when that page reloads.
func (g *guard) signIn(w http.ResponseWriter, r *http.Request) {
	missed := r.Method == http.MethodPost
	if missed {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if name, ok := g.nameOf(r.PostFormValue("secret")); ok && !g.foreign(r) && g.own(r) {
			g.know(w, name)
			// Never redirect to another host, as //host would.
			http.Redirect(w, r, (&url.URL{Path: path.Clean("/" + r.URL.Path), RawQuery: r.URL.RawQuery}).String(),
				http.StatusSeeOther)
			return
		}
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="uwf web"`)
	if err := g.door(w, missed); err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
	}
}

// know sets the cookie.
func (g *guard) know(w http.ResponseWriter, name string) {
	http.SetCookie(w, &http.Cookie{
		Name: g.cookie(), Value: g.cookieFor(name), Path: g.base,
		HttpOnly: true, Secure: g.scheme == "https", SameSite: http.SameSiteStrictMode,
	})
}

// cookie returns the cookie's name: with TLS, one that no other host can set.
func (g *guard) cookie() string {
	if g.scheme == "https" {
		return "__Host-" + cookieName
	}
	return cookieName
}

// signedIn is the key of the name of the token that a person signed in with, in the context of a request.
type signedIn struct{}

// named adds the name of the person's token to a request.
func (g *guard) named(r *http.Request) *http.Request {
	name, _ := g.who(r)
	if g.token == "" {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), signedIn{}, name))
}

// nameOf returns the name of a token, and whether it is valid.
func (g *guard) nameOf(token string) (name string, ok bool) {
	for line := range strings.Lines(g.token) {
		words := strings.Fields(line)
		if same(token, words[len(words)-1]) {
			name, ok = strings.Join(words[:len(words)-1], " "), true
		}
	}
	return name, ok
}

// cookieFor returns the cookie of a name. It does not help to make the cookie of another name.
func (g *guard) cookieFor(name string) string {
	mac := hmac.New(sha256.New, []byte(g.secret))
	mac.Write([]byte(name))
	return base64.RawURLEncoding.EncodeToString([]byte(name)) + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// known reports whether the browser has our cookie, or a program has sent the token.
func (g *guard) known(r *http.Request) bool {
	_, ok := g.who(r)
	return ok
}

// who returns the name of the token with which a person or a program has signed in; "" if it has none.
func (g *guard) who(r *http.Request) (name string, ok bool) {
	if given, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); is && g.token != "" {
		return g.nameOf(given)
	}
	cookie, err := r.Cookie(g.cookie())
	if err != nil {
		return "", false
	}
	text, _, _ := strings.Cut(cookie.Value, ".")
	data, err := base64.RawURLEncoding.DecodeString(text)
	return string(data), err == nil && same(cookie.Value, g.cookieFor(string(data)))
}

// foreign reports whether, according to the browser, the request comes from another site or port, or the
// response would be embedded in a page. The cookie is not sent then; a browser that sends it anyway gets
// nothing.
func (g *guard) foreign(r *http.Request) bool {
	site, to, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Sec-Fetch-Dest"), r.Header.Get("Origin")
	return site != "" && site != "same-origin" && site != "none" ||
		slices.Contains([]string{"iframe", "frame", "embed", "object"}, to) ||
		origin != "" && origin != g.site(r)
}

// own reports whether, according to the browser, one of our pages sent a form.
func (g *guard) own(r *http.Request) bool { return r.Header.Get("Origin") == g.site(r) }

// same compares in constant time and hides the lengths.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// headers returns the headers of every response.
func headers() map[string]string {
	return map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src " +
			"'self'; " +
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "same-origin", // with no-referrer, our own forms would lack an origin
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
		"Cache-Control":                "no-store",
	}
}

func refuse(w http.ResponseWriter, status int, why string) {
	http.Error(w, "uwf web: "+why, status)
}
