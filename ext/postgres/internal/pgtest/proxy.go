//go:build unix

package pgtest

import (
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"
	"sync"
)

// Proxy forwards connections to the server and cuts each after a random number of bytes from either side. So
// a connection can break before a statement arrives, within it, after its execution, or within the response.
type Proxy struct {
	Port int

	listener net.Listener
	socket   string
	mu       sync.Mutex
	random   *rand.Rand
	most     int64 // maximum bytes until the cut; 0 means never
	cuts     int
	open     map[net.Conn]bool
	group    sync.WaitGroup
}

// NewProxy returns a proxy that listens on the loopback address.
func NewProxy(s *Server, seed uint64) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		Port: l.Addr().(*net.TCPAddr).Port, listener: l, socket: filepath.Join(s.Dir, ".s.PGSQL."+strconv.Itoa(s.Port)),
		random: rand.New(rand.NewPCG(seed, seed)), open: map[net.Conn]bool{},
	}
	p.group.Go(p.accept)
	return p, nil
}

// CutWithin cuts each further connection within the given number of bytes; 0 means never.
func (p *Proxy) CutWithin(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most = bytes
}

// Cuts returns the number of connections cut so far.
func (p *Proxy) Cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

// Close closes the proxy and all connections.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.mu.Lock()
	for c := range p.open {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.group.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // the proxy was closed
		}
		p.group.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	server, err := net.Dial("unix", p.socket)
	if err != nil {
		_ = client.Close()
		return
	}
	up, down := p.begin(client, server)
	var group sync.WaitGroup
	var once sync.Once
	end := func() {
		once.Do(func() {
			// Reset the connection, as if the cable had been unplugged.
			if tcp, ok := client.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			_, _ = client.Close(), server.Close()
		})
	}
	group.Go(func() { p.carry(server, client, up); end() })
	group.Go(func() { p.carry(client, server, down); end() })
	group.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, client)
	delete(p.open, server)
}

// begin chooses where a connection is cut. Only one direction is cut.
func (p *Proxy) begin(client, server net.Conn) (up, down int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[client], p.open[server] = true, true
	up, down = 1<<62, 1<<62
	if p.most == 0 {
		return up, down
	}
	at := 400 + p.random.Int64N(p.most) // never cut the handshake, so that there is progress
	if p.random.IntN(2) == 0 {
		return at, down
	}
	return up, 800 + at
}

func (p *Proxy) carry(to, from net.Conn, bytes int64) {
	n, _ := io.CopyN(to, from, bytes)
	if n == bytes {
		p.mu.Lock()
		p.cuts++
		p.mu.Unlock()
	}
}
