// Package proxy is the only way out of a sandbox's network. It runs outside, accepts connections on a
// listener created inside, and connects to an allow list of hosts, by CONNECT or for a single plain HTTP
// request. Clients are hostile, so each connection is bounded in time and size and has a single target.
package proxy

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/util/hostlist"
	"github.com/united-workforce/uwf/utilagent/internal/publicaddr"
)

const (
	maxConnections = 128                   // further clients wait
	maxAccepts     = 100                   // consecutive failures, for example without free descriptors
	betweenAccepts = 50 * time.Millisecond // delay after such a failure
	maxHead        = 64 << 10              // bytes of a request's head
	dialTime       = 10 * time.Second      // timeout for connecting to a host
	lingering      = time.Second           // time for a refused client to read the reason
	defaultHeads   = 30 * time.Second      // timeout for a request's head and for a TLS hello
	defaultIdle    = 30 * time.Minute      // a model can think for a long time before its first byte
	lingerBytes    = 64 << 10              // bytes read from a refused client's body
	established    = "HTTP/1.1 200 OK\r\n\r\n"
)

// Options overrides a proxy's defaults.
type Options struct {
	Resolver *net.Resolver // default: the system's resolver
	Heads    time.Duration // timeout for a request's head and for a TLS hello; default 30 seconds
	Idle     time.Duration // timeout without traffic in either direction; default 30 minutes

	public  func(netip.Addr) bool // for tests; default publicaddr.Is
	tlsPort uint16                // for tests; default 443
}

// Proxy connects clients to an allow list of hosts.
type Proxy struct {
	allow   hostlist.List
	o       Options
	refused refusals
}

// New returns a proxy for the hosts in allow.
func New(allow hostlist.List, o Options) *Proxy {
	o.Heads, o.Idle = cmp.Or(o.Heads, defaultHeads), cmp.Or(o.Idle, defaultIdle)
	o.tlsPort = cmp.Or(o.tlsPort, 443)
	if o.public == nil {
		o.public = publicaddr.Is
	}
	return &Proxy{allow: allow, o: o}
}

// Refused returns the hosts that clients were denied, in the order of their first request.
func (p *Proxy) Refused() []Refusal { return p.refused.list() }

// Serve accepts connections until ctx is cancelled, then closes l. It returns when no connection is left.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	var connections sync.WaitGroup
	defer connections.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	slots := make(chan struct{}, maxConnections)
	for failed := 0; ; {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		c, err := l.Accept()
		if err == nil {
			failed = 0
			connections.Go(func() {
				defer func() { <-slots }()
				p.serve(ctx, &conn{Conn: c})
			})
			continue
		}
		<-slots
		if failed++; ctx.Err() != nil {
			return nil
		} else if failed == maxAccepts || errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accept a connection of the sandbox: %w", err)
		}
		select {
		case <-time.After(betweenAccepts):
		case <-ctx.Done():
		}
	}
}

func (p *Proxy) serve(ctx context.Context, c *conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	c.patience = time.AfterFunc(p.o.Heads, cancel)
	defer c.patience.Stop()
	r := bufio.NewReaderSize(c, maxHead)
	q, err := readRequest(r)
	if err != nil {
		c.answer("400 Bad Request", err.Error())
		return
	}
	if !p.allow.Allows(q.host, q.port) {
		p.refused.add(q.host, q.port)
		c.answer("403 Forbidden", q.target()+" is not an allowed host")
		return
	}
	c.patience.Reset(dialTime)
	dialled, err := p.dial(ctx, q)
	if errors.Is(err, errPrivate) {
		p.refused.add(q.host, q.port)
		c.answer("403 Forbidden", q.target()+" has an address that is not public")
		return
	} else if err != nil {
		c.answer("502 Bad Gateway", "cannot reach "+q.target())
		return
	}
	up := &conn{Conn: dialled, patience: c.patience}
	defer up.Close()
	defer context.AfterFunc(ctx, func() { up.Close() })()
	var from io.Reader
	if q.head != "" {
		from = io.MultiReader(strings.NewReader(q.head), r)
	} else if from = p.establish(c, r, q); from == nil {
		return
	}
	c.idle, up.idle = p.o.Idle, p.o.Idle
	c.patience.Reset(p.o.Idle)
	tunnel(c, from, up)
}

// request is a client's request.
type request struct {
	host hostlist.Host
	port uint16
	head string // head of a plain request as its server gets it; "" for a tunnel
}

func (q request) target() string { return net.JoinHostPort(q.host.String(), strconv.Itoa(int(q.port))) }

// readRequest reads a request's head. Everything after it goes only to the target, as in a tunnel, so it does
// not matter how the target parses it.
func readRequest(r *bufio.Reader) (q request, err error) {
	line, err := readLine(r)
	if err != nil {
		return q, err
	}
	words := strings.Split(line, " ")
	if len(words) != 3 || words[2] != "HTTP/1.1" && words[2] != "HTTP/1.0" {
		return q, errors.New("the request line is malformed")
	}
	asked, path := words[1], ""
	if words[0] != "CONNECT" {
		const scheme = "http://"
		if len(asked) < len(scheme) || !strings.EqualFold(asked[:len(scheme)], scheme) {
			return q, errors.New("only http:// URLs can be fetched through this proxy, and CONNECT opens tunnels")
		}
		asked = asked[len(scheme):]
		i := strings.IndexAny(asked+"/", "/?")
		asked, path = asked[:i], "/"+strings.TrimPrefix(asked[i:], "/")
		if !strings.Contains(asked[strings.LastIndexByte(asked, ']')+1:], ":") {
			asked += ":80"
		}
	}
	if q.host, q.port, err = hostlist.ParseTarget(asked); err != nil {
		return q, err
	}
	head := fmt.Sprintf("%s %s %s\r\nHost: %s\r\nConnection: close\r\n", words[0], path, words[2], strings.TrimSuffix(q.target(), ":80"))
	for {
		if line, err = readLine(r); err != nil {
			return q, err
		}
		if len(head)+len(line) > maxHead {
			return q, errors.New("the request head is too large")
		}
		switch key, _, _ := strings.Cut(strings.ToLower(line), ":"); {
		case line == "" && path != "":
			q.head = head + "\r\n"
			return q, nil
		case line == "":
			return q, nil
		case key != "host" && key != "connection" && key != "keep-alive" && !strings.HasPrefix(key, "proxy-"):
			head += line + "\r\n"
		}
	}
}

func readLine(r *bufio.Reader) (string, error) {
	b, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", errors.New("the request head is too large")
	}
	return strings.TrimRight(string(b), "\r\n"), err
}

var errPrivate = errors.New("an address that is not public")

// dial connects to the target. It checks each address at the moment of dialing, whatever the name resolved to
// before.
func (p *Proxy) dial(ctx context.Context, q request) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTime, Resolver: p.o.Resolver}
	d.Control = func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err == nil && !p.mayDial(q, ap.Addr().Unmap()) {
			err = errPrivate
		}
		return err
	}
	return d.DialContext(ctx, "tcp", net.JoinHostPort(q.host.String(), strconv.Itoa(int(q.port))))
}

// mayDial reports whether an allowed target may have an address: a public one, or one that is listed itself.
func (p *Proxy) mayDial(q request, a netip.Addr) bool {
	if p.allow.Allows(hostlist.Host{Addr: a}, q.port) {
		return true
	}
	if q.host.Name == "localhost" {
		return a.IsLoopback()
	}
	return p.o.public(a) && !publicaddr.IsOwn(a)
}

// establish opens a tunnel and returns the reader for the client's data, or nil to refuse. On port 443 it
// waits for the TLS hello, whose server name must match the target, because one address serves many names.
func (p *Proxy) establish(c *conn, r io.Reader, q request) io.Reader {
	if _, err := io.WriteString(c, established); err != nil {
		return nil
	}
	if q.port != p.o.tlsPort {
		return r
	}
	c.patience.Reset(p.o.Heads)
	name, hello, err := serverName(r)
	// With equal length, EqualFold folds only ASCII.
	if err == nil && len(name) == len(q.host.Name) && strings.EqualFold(name, q.host.Name) {
		return io.MultiReader(hello, r)
	}
	asked, err := hostlist.ParseHost(name)
	if err != nil {
		asked = q.host
	}
	p.refused.add(asked, q.port)
	return nil
}

// tunnel copies in both directions. When one side closes its half, the other half stays open.
func tunnel(c *conn, r io.Reader, up *conn) {
	half := func(to *conn, from io.Reader) {
		if _, err := io.Copy(to, from); err != nil {
			c.Close()
			up.Close()
			return
		}
		to.closeWrite()
	}
	var g sync.WaitGroup
	g.Go(func() { half(up, r) })
	half(c, up)
	g.Wait()
}

// conn is one of two connections that share an idle timeout. Once idle is set, each byte resets it.
type conn struct {
	net.Conn
	patience *time.Timer
	idle     time.Duration
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.renew(n)
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.renew(n)
	return n, err
}

func (c *conn) renew(n int) {
	if n > 0 && c.idle > 0 {
		c.patience.Reset(c.idle)
	}
}

func (c *conn) closeWrite() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // the other side may be gone
	} else {
		c.Close()
	}
}

// answer refuses a request and waits briefly for the client to read the reason: closing with unread bytes
// would reset the connection.
func (c *conn) answer(status, why string) {
	c.patience.Reset(lingering)
	fmt.Fprintf(c, "HTTP/1.1 %s\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\nuwf: %s\n",
		status, len(why)+len("uwf: \n"), why)
	c.closeWrite()
	_, _ = io.CopyN(io.Discard, c, lingerBytes)
}

const maxRefused = 50 // bounds the size of a step's record, which lists all of them

// Refusal is a denied host in canonical form. An empty Host represents all others after the first 50.
type Refusal struct {
	Host  string `json:"host,omitempty"`
	Port  int    `json:"port,omitempty"`
	Count int    `json:"count"`
}

type refusals struct {
	mu    sync.Mutex
	known []Refusal
}

func (r *refusals) add(h hostlist.Host, port uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := Refusal{Host: h.String(), Port: int(port)}
	same := func(k Refusal) bool { return k.Host == one.Host && k.Port == one.Port }
	at := slices.IndexFunc(r.known, same)
	if at < 0 && len(r.known) >= maxRefused {
		one = Refusal{}
		at = slices.IndexFunc(r.known, same)
	}
	if at < 0 {
		r.known, at = append(r.known, one), len(r.known)
	}
	r.known[at].Count++
}

func (r *refusals) list() []Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.known)
}
