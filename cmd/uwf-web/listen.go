package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/safeopen"
)

// place is the address of the pages as the server and browsers see it.
type place struct {
	scheme string                 // http or https
	host   string                 // with port, from the printed address
	hosted func(host string) bool // reports whether a Host header is acceptable
	token  string                 // sign-in token; "" if the URL contains a secret
}

// local returns a place on this machine that accepts only the printed host.
func local(host string) (place, error) {
	_, port, err := net.SplitHostPort(host)
	hosted := func(asked string) bool {
		return slices.Contains([]string{bare("http", host), bare("http", "localhost:"+port)}, bare("http", asked))
	}
	return place{scheme: "http", host: host, hosted: hosted}, err
}

// bare returns a host as browsers send it: in lower case, without the default port of a scheme.
func bare(scheme, host string) string {
	return strings.TrimSuffix(strings.ToLower(host), map[string]string{"http": ":80", "https": ":443"}[scheme])
}

// wish holds the command-line options for the address.
type wish struct{ listen, socket, address, tokenFile, cert, key string }

func wished(c *ucli.Context) (wish, error) {
	w := wish{
		listen: c.String("listen"), socket: c.String("socket"), address: c.String("address"),
		tokenFile: c.String("token-file"), cert: c.String("tls-cert"), key: c.String("tls-key"),
	}
	switch {
	case w.socket != "" && (w.listen != "" || c.IsSet("port")):
		return w, cmdline.UsageError("--socket cannot be used with --listen or --port", socketExample)
	case w.socket != "" && w.cert+w.key != "":
		return w, cmdline.UsageError("--socket cannot be used with --tls-cert and --tls-key; the proxy does TLS", socketExample)
	case (w.socket == "") != (w.address == ""):
		return w, cmdline.UsageError("--socket and --address must be used together", socketExample)
	case w.listen != "" && c.IsSet("port"):
		return w, cmdline.UsageError("--listen cannot be used with --port", listenExample)
	case w.listen == "":
		w.listen = net.JoinHostPort("127.0.0.1", c.String("port"))
	}
	return w, nil
}

const (
	listenExample = "uwf web --listen 0.0.0.0:8443 --token-file token --tls-cert cert.pem --tls-key key.pem"
	socketExample = "uwf web --socket web.sock --address https://uwf.example.org --token-file token"
	tokenExample  = "(umask 077; head -c 24 /dev/urandom | base64 > token)"
)

// open listens as requested if that is safe: an address that is not local needs a sign-in token and TLS.
func (w wish) open(ctx context.Context, e env.Env) (net.Listener, place, error) {
	if w.socket != "" {
		return w.openSocket(ctx, e)
	}
	at, err := net.ResolveTCPAddr("tcp", w.listen)
	if err != nil {
		return nil, place{}, cmdline.UsageError("--listen must be an address with a port: "+err.Error(), listenExample)
	}
	secured := w.tokenFile+w.cert+w.key != ""
	switch {
	case !secured && !at.IP.IsLoopback():
		return nil, place{}, cmdline.UsageError(w.listen+" is reachable from other machines, which needs a token and TLS",
			listenExample, "to use ssh instead: uwf web --port 8123; ssh -L 8123:127.0.0.1:8123 HOST")
	case secured && (w.tokenFile == "" || w.cert == "" || w.key == ""):
		return nil, place{}, cmdline.UsageError("--token-file, --tls-cert and --tls-key must be used together", listenExample)
	case secured:
		return w.openTLS(e, at)
	}
	listener, err := listen("tcp", at.String(), "to use a free port: uwf web")
	if err != nil {
		return nil, place{}, err
	}
	p, err := local(listener.Addr().String())
	return listener, p, err
}

func listen(network, address, hint string) (net.Listener, error) {
	listener, err := net.Listen(network, address)
	if err != nil {
		return nil, &protocol.Error{Code: protocol.CodeFailed, Message: err.Error(), Err: err, Hints: []string{hint}}
	}
	return listener, nil
}

// openTLS listens with a certificate, which determines the accepted host names.
func (w wish) openTLS(e env.Env, at *net.TCPAddr) (net.Listener, place, error) {
	token, err := readToken(e.Path(w.tokenFile))
	if err != nil {
		return nil, place{}, err
	}
	cert, err := tls.LoadX509KeyPair(e.Path(w.cert), e.Path(w.key))
	if err != nil {
		return nil, place{}, cmdline.UsageError("read the certificate: "+err.Error(), listenExample)
	}
	if e.Now().After(cert.Leaf.NotAfter) {
		return nil, place{}, cmdline.UsageError("the certificate expired on "+cert.Leaf.NotAfter.UTC().Format(time.DateOnly), listenExample)
	}
	name := nameOf(cert.Leaf)
	if name == "" {
		return nil, place{}, cmdline.UsageError("the certificate has no host name (subjectAltName)", listenExample)
	}
	listener, err := listen("tcp", at.String(), listenExample)
	if err != nil {
		return nil, place{}, err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	p := place{scheme: "https", host: joined(name, port), token: token, hosted: func(asked string) bool {
		host, to, err := net.SplitHostPort(asked)
		if err != nil {
			host, to = strings.Trim(asked, "[]"), "443"
		}
		return to == port && cert.Leaf.VerifyHostname(host) == nil
	}}
	return tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"}}), p, err
}

// nameOf returns a host name from a certificate, or "".
func nameOf(cert *x509.Certificate) string {
	for _, name := range cert.DNSNames {
		if !strings.Contains(name, "*") {
			return name
		}
	}
	if len(cert.IPAddresses) > 0 {
		return cert.IPAddresses[0].String()
	}
	for _, name := range cert.DNSNames {
		return strings.Replace(name, "*", "uwf", 1)
	}
	return ""
}

// joined returns a host with its port as browsers write it.
func joined(name, port string) string {
	host := net.JoinHostPort(name, port)
	if port == "443" {
		return strings.TrimSuffix(host, ":443")
	}
	return host
}

// openSocket listens on a Unix socket for a proxy, which provides TLS and the host name.
func (w wish) openSocket(ctx context.Context, e env.Env) (net.Listener, place, error) {
	at, err := url.Parse(w.address)
	if err != nil || at.Scheme != "https" || at.Host == "" || strings.Trim(at.Path,
		"/")+at.RawQuery+at.Fragment != "" || at.User != nil {
		return nil, place{}, cmdline.UsageError("--address must be https:// and a host name, got "+plaintext.Line(w.address), socketExample)
	}
	if w.tokenFile == "" {
		return nil, place{}, cmdline.UsageError("--socket needs --token-file",
			socketExample)
	}
	token, err := readToken(e.Path(w.tokenFile))
	if err != nil {
		return nil, place{}, err
	}
	path := e.Path(w.socket)
	if err := freeSocket(ctx, path); err != nil {
		return nil, place{}, err
	}
	listener, err := listen("unix", path, socketExample)
	if err != nil {
		return nil, place{}, err
	}
	const group = 0o660 // for the proxy, which belongs to the directory's group
	if err := os.Chmod(path, group); err != nil {
		return nil, place{}, errors.Join(err, listener.Close())
	}
	host := bare("https", at.Host)
	return listener, place{scheme: "https", host: host, token: token,
		hosted: func(asked string) bool { return bare("https", asked) == host }}, nil
}

// freeSocket removes the socket of a killed server.
func freeSocket(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return cmdline.UsageError(plaintext.Line(path)+" is "+safeopen.Kind(info.Mode())+", not a socket", socketExample)
	}
	if other, err := (&net.Dialer{}).DialContext(ctx, "unix", path); err == nil {
		_ = other.Close() // the connection only tests whether a server is listening
		return &protocol.Error{Code: protocol.CodeLocked, Message: "another server listens on " + plaintext.Line(path),
			Hints: []string{socketExample}}
	}
	return os.Remove(path)
}

// shortestToken is long enough that the token cannot be guessed over a network.
const shortestToken = 32

// readToken reads the sign-in token.
func readToken(path string) (string, error) {
	const longest = 16 << 10
	f, err := safeopen.OpenMax(path, longest, safeopen.Follow)
	if err != nil {
		return "", cmdline.UsageError("read the token: "+err.Error(), tokenExample)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	const others = 0o077
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&others != 0 {
		return "", cmdline.UsageError(fmt.Sprintf("other users can read the token %s (mode %04o)", plaintext.Line(path), mode),
			"chmod 600 "+plaintext.Word(path))
	}
	data, err := io.ReadAll(io.LimitReader(f, longest))
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	var all []string // "token", or "name token"
	for line := range strings.Lines(token) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		last := words[len(words)-1]
		if len(words) > 2 || len(last) < shortestToken || strings.ContainsFunc(line, func(r rune) bool { return r > '~' }) {
			all = nil
			break
		}
		all = append(all, strings.Join(words, " "))
	}
	if len(all) == 0 {
		return "", cmdline.UsageError(fmt.Sprintf("invalid token: want lines with a word of at least %d letters and digits, "+
			"each after a name or alone", shortestToken), tokenExample)
	}
	return strings.Join(all, "\n"), nil
}
