package wire_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
	"github.com/united-workforce/uwf/remote/wire"
	"github.com/united-workforce/uwf/util/gitobject"
	"github.com/united-workforce/uwf/util/prosetest"
)

const idA = "01ARZ3NDEKTSV4RRFFQ69G5FAA"

// frame returns a frame of the protocol.
func frame(kind byte, text string) string {
	head := []byte{kind, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(head[1:], uint32(len(text)))
	return string(head) + text
}

const greeting = `{"version":1,"info":{"hash":"xxh3","program":"stranger","nowMs":1}}`

// stranger plays the other side. It sends each string after it has read a request; after the last one the
// stream ends, or is silent.
func stranger(t *testing.T, silent bool, says ...string) (*wire.Client, error) {
	t.Helper()
	theirs, out := io.Pipe()
	in, answers := io.Pipe()
	go func() {
		requests := bufio.NewReader(theirs)
		_, _ = io.CopyN(io.Discard, requests, int64(len(wire.Magic)))
		for _, say := range says {
			for {
				var head [5]byte
				if _, err := io.ReadFull(requests, head[:]); err != nil {
					return
				}
				if _, err := io.CopyN(io.Discard, requests, int64(binary.BigEndian.Uint32(head[1:])&^(1<<31))); err != nil {
					return
				}
				if head[0] == '.' {
					break
				}
			}
			if _, err := io.WriteString(answers, say); err != nil {
				return
			}
		}
		if !silent {
			_ = answers.Close()
			_ = theirs.Close()
		}
	}()
	c, err := wire.Connect(t.Context(), in, out, func() error {
		_ = out.Close()
		return in.Close()
	}, wire.Options{Hash: cas.XXH3, Silence: 300 * time.Millisecond})
	if c != nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

// The client reports an invalid greeting of a helper.
func TestHostileGreetings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		says string
	}{
		"the words of a shell":       {"Welcome to \x1b[2Jhost!\nuwf: command not found\n"},
		"another program":            {"SSH-2.0-OpenSSH_9.9\r\n"},
		"nothing":                    {""},
		"half of it":                 {wire.Magic[:5]},
		"nothing after it":           {wire.Magic},
		"a giant frame":              {wire.Magic + ".\x7f\xff\xff\xff"},
		"an endless message":         {wire.Magic + strings.Repeat(".\x80\x10\x00\x00"+strings.Repeat("x", 1<<20), 9)},
		"frames that are empty":      {wire.Magic + strings.Repeat(".\x80\x00\x00\x00", 3)},
		"a kind that is none":        {wire.Magic + frame('z', "{}")},
		"a node":                     {wire.Magic + frame('n', "x")},
		"a message of two kinds":     {wire.Magic + ".\x80\x00\x00\x01{" + frame('v', "}")},
		"no JSON":                    {wire.Magic + frame('.', "{")},
		"a list":                     {wire.Magic + frame('.', "[]")},
		"no hash function":           {wire.Magic + frame('.', `{"version":1,"info":{"hash":"md5"}}`)},
		"another hash function":      {wire.Magic + frame('.', strings.Replace(greeting, "xxh3", "xxh64", 1))},
		"a version from the future":  {wire.Magic + frame('.', `{"version":2,"info":{"hash":"xxh3"}}`)},
		"no version":                 {wire.Magic + frame('.', `{"info":{"hash":"xxh3"}}`)},
		"no info":                    {wire.Magic + frame('.', `{"version":1}`)},
		"a refusal with codes in it": {wire.Magic + frame('.', `{"error":{"code":"failed","message":"no \u001b[2J\u001b]0;x\u0007\u202eway"}}`)},
		"an upgrade":                 {wire.Magic + frame('.', `{"error":{"code":"unsupported-version","message":"upgrade"}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := stranger(t, false, test.says)
			prosetest.Error(t, err)
			for _, r := range err.Error() {
				require.True(t, r >= ' ' && r != 0x7f && r != '\u202e', "%q", err)
			}
		})
	}
	_, err := stranger(t, false, wire.Magic+frame('.', `{"version":2,"info":{"hash":"xxh3"}}`))
	require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeUnsupportedVersion})
}

// The client checks each response against its request. An invalid one closes the connection.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	good, other := castest.Node(t, cas.XXH3, "good"), castest.Node(t, cas.XXH3, "other")
	file := string(cas.MarshalFile(good))
	foreign, err := cas.MarshalTombstone(cas.Tombstone{Hash: good.Hash, Type: good.Type, Foreign: true})
	require.NoError(t, err)
	g, o, done := string(good.Hash), string(other.Hash), frame('.', "{}")
	get := func(c *wire.Client) error {
		var last error
		for _, err := range c.Get(context.Background(), []cas.Hash{good.Hash}) {
			last = err
		}
		return last
	}
	missing := func(c *wire.Client) error {
		_, err := c.Missing(context.Background(), []cas.Hash{good.Hash})
		return err
	}
	put := func(c *wire.Client) error {
		_, err := c.Put(context.Background(), []remote.Record{{Hash: good.Hash, File: []byte(file)}})
		return err
	}
	walk := func(c *wire.Client) error {
		for _, err := range c.Walk(context.Background(), []cas.Hash{good.Hash}, nil) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	list := func(c *wire.Client) error {
		for _, err := range c.Threads(context.Background(), remote.Filter{Active: true, Limit: 2}) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	thread := func(c *wire.Client) error {
		_, err := c.Thread(context.Background(), idA)
		return err
	}
	take := func(c *wire.Client) error {
		_, err := c.Take(context.Background(), idA, "me", time.Minute)
		return err
	}
	renew := func(c *wire.Client) error {
		_, err := c.Renew(context.Background(), idA, 7, time.Minute)
		return err
	}
	names := func(c *wire.Client) error {
		_, err := c.Workflows(context.Background())
		return err
	}
	objects := func(c *wire.Client) error {
		for _, err := range c.GetObjects(context.Background(), []protocol.Tree{gitobject.ID(gitobject.File, []byte("x"), "sha1")}) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	state := func(id, head, more string) string {
		return frame('v', `{"state":{"thread":"`+id+`","head":"`+head+`"`+more+`}}`)
	}
	for name, test := range map[string]struct {
		call func(c *wire.Client) error
		says string
	}{
		"content of another hash":     {get, frame('n', g+string(cas.MarshalFile(other))) + done},
		"another node":                {get, frame('n', o+string(cas.MarshalFile(other))) + done},
		"a cut node":                  {get, frame('n', g+file[:20]) + done},
		"no node at all":              {get, done},
		"a node twice":                {get, frame('n', g+file) + frame('n', g+file) + done},
		"a node as a tombstone":       {get, frame('t', g+file) + done},
		"a foreign tombstone":         {get, frame('t', g+string(foreign)) + done},
		"a node without a hash":       {get, frame('n', "x") + done},
		"the middle of a node":        {get, frame('n', g+file)[:30]},
		"a file for a node":           {get, frame('f', "x") + done},
		"more than was asked":         {missing, frame('.', `{"hashes":["`+o+`"]}`)},
		"one twice":                   {missing, frame('.', `{"hashes":["`+g+`","`+g+`"]}`)},
		"no hash":                     {missing, frame('.', `{"hashes":["../../etc/pass"]}`)},
		"a hash that is a number":     {missing, frame('.', `{"hashes":[1]}`)},
		"a value where none belongs":  {missing, frame('v', "{}") + done},
		"different from all":          {put, frame('.', `{"hashes":["`+o+`"]}`)},
		"a walk with nonsense":        {walk, frame('v', `{"hashes":["x"]}`) + done},
		"a walk in a circle":          {walk, frame('v', `{"hashes":["`+g+`"]}`) + frame('v', `{"hashes":["`+g+`"]}`) + done},
		"no thread":                   {thread, done},
		"another thread":              {thread, frame('.', `{"state":{"thread":"01ARZ3NDEKTSV4RRFFQ69G5FAB","head":"`+g+`"}}`)},
		"a head that is none":         {thread, frame('.', `{"state":{"thread":"`+idA+`","head":"../x"}}`)},
		"an end that is none":         {thread, frame('.', `{"state":{"thread":"`+idA+`","head":"`+g+`","ended":{}}}`)},
		"no lease":                    {take, done},
		"a lease of another":          {take, frame('.', `{"lease":{"thread":"x","fence":1,"leftMs":1}}`)},
		"a lease without a fence":     {take, frame('.', `{"lease":{"thread":"`+idA+`","leftMs":1}}`)},
		"a lease for ever":            {take, frame('.', `{"lease":{"thread":"`+idA+`","fence":1,"leftMs":9007199254740991}}`)},
		"another lease renewed":       {renew, frame('.', `{"lease":{"thread":"`+idA+`","fence":8,"leftMs":1}}`)},
		"threads in disorder":         {list, state("01ARZ3NDEKTSV4RRFFQ69G5FAB", g, "") + state(idA, g, "") + done},
		"a thread twice":              {list, state(idA, g, "") + state(idA, g, "") + done},
		"one that was not asked for":  {list, state(idA, g, `,"ended":{"workflow":"`+g+`","status":"completed"}`) + done},
		"more than the limit":         {list, state(idA, g, "") + state("01ARZ3NDEKTSV4RRFFQ69G5FAB", g, "") + state("01ARZ3NDEKTSV4RRFFQ69G5FAC", g, "") + done},
		"a thread id that is a path":  {list, state("../../etc/passwd", g, "") + done},
		"names in disorder":           {names, frame('v', `{"name":"b","hash":"`+g+`"}`) + frame('v', `{"name":"a","hash":"`+g+`"}`) + done},
		"a name without a hash":       {names, frame('v', `{"name":"b"}`) + done},
		"another object":              {objects, frame('f', "\x14"+strings.Repeat("x", 20)+"y") + done},
		"an object of no hash":        {objects, frame('f', "\x15"+strings.Repeat("x", 30)) + done},
		"an object that is cut short": {objects, frame('f', "\x14xx") + done},
		"a giant":                     {get, "n\x7f\xff\xff\xff"},
		"the end":                     {get, ""},
		"an error without a lease":    {take, frame('.', `{"error":{"code":"leased","message":"x"}}`)},
		"an error of no code":         {take, frame('.', `{"error":{}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := stranger(t, false, wire.Magic+frame('.', greeting), test.says)
			require.NoError(t, err)
			require.Error(t, test.call(c))
		})
	}
}

// Errors about invalid responses use the terms of the protocol, not of Go.
func TestWordsAboutAnswers(t *testing.T) {
	t.Parallel()
	for _, says := range []string{
		`{"state":{"thread":"` + idA + `","lease":{"leftMs":"x"}}}`,
		`{"state":{"thread":"` + idA + `","lease":{"leftMs":1e300}}}`,
		`{"state":{"thread":"` + idA + `","lease":[]}}`,
		`{`,
		`[]`,
		`{"error":{"code":"leased","message":"x","lease":{"thread":"` + idA + `","holder":"y","leftMs":1000000000000000}}}`,
	} {
		c, err := stranger(t, false, wire.Magic+frame('.', greeting), frame('.', says))
		require.NoError(t, err)
		_, err = c.Thread(t.Context(), idA)
		prosetest.Error(t, err, says)
	}
}

// A helper cannot set facts that concern this machine.
func TestFactsOfAStranger(t *testing.T) {
	t.Parallel()
	says := frame('.', `{"state":{"thread":"`+idA+`","head":"4EAEYQKFHTJ23","facts":{"title":"t","imported":{"from":"x","confirmed":true},"agents":{"*":"./evil"},"workspace":{"mode":"none","root":"/"},"remote":{"name":"x"}}}}`)
	c, err := stranger(t, false, wire.Magic+frame('.', greeting), says)
	require.NoError(t, err)
	got, err := c.Thread(t.Context(), idA)
	require.NoError(t, err)
	require.Equal(t, "t", *got.Facts.Title)
	require.Nil(t, got.Facts.Imported)
	require.Nil(t, got.Facts.Workspace)
	require.Nil(t, got.Facts.Remote)
	require.Nil(t, got.Facts.Agents)
}

// A peer that is silent, or only reports that it is working, is disconnected after a timeout.
func TestSilence(t *testing.T) {
	t.Parallel()
	var silent *wire.TimeoutError
	_, err := stranger(t, true, "")
	require.ErrorAs(t, err, &silent)
	_, err = stranger(t, true, wire.Magic)
	require.ErrorAs(t, err, &silent)
	c, err := stranger(t, true, wire.Magic+frame('.', greeting), frame('n', "0123")[:7])
	require.NoError(t, err)
	_, err = c.Missing(t.Context(), nil)
	require.Error(t, err)
	_, err = c.Missing(t.Context(), nil)
	require.Error(t, err, "it has ended")

	c, err = stranger(t, true, wire.Magic+frame('.', greeting), "")
	require.NoError(t, err)
	_, err = c.Info(t.Context())
	require.ErrorAs(t, err, &silent)

	theirs, out := io.Pipe()
	in, answers := io.Pipe()
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	go func() {
		_, err := io.WriteString(answers, wire.Magic)
		for err == nil {
			_, err = io.WriteString(answers, frame('k', ""))
		}
	}()
	_, err = wire.Connect(t.Context(), in, out, func() error {
		_ = out.Close()
		return in.Close()
	}, wire.Options{Hash: cas.XXH3, Patience: 200 * time.Millisecond})
	var busy *wire.TimeoutError
	require.ErrorAs(t, err, &busy, "at work for ever")
	prosetest.Error(t, err)
}

// Lists are limited in bytes, even if the caller doesn't read the rest.
func TestEndlessLists(t *testing.T) {
	t.Parallel()
	entry := func(i int) string {
		return fmt.Sprintf(`{"state":{"thread":"01ARZ3NDEKTSV4RR%010d","head":"4EAEYQKFHTJ23","facts":{"title":%q}}}`, i, strings.Repeat("x", 900))
	}
	for name, most := range map[string]int{"all": 1 << 30, "left": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			theirs, out := io.Pipe()
			in, answers := io.Pipe()
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			go func() {
				_, err := io.WriteString(answers, wire.Magic+frame('.', greeting))
				for i := 0; err == nil; i++ {
					_, err = io.WriteString(answers, frame('v', entry(i)))
				}
			}()
			c, err := wire.Connect(t.Context(), in, out, func() error {
				_ = out.Close()
				return in.Close()
			}, wire.Options{Hash: cas.XXH3, MaxList: 100_000})
			require.NoError(t, err)
			defer func() { _ = c.Close() }()
			var last error
			seen := 0
			for _, err := range c.Threads(t.Context(), remote.Filter{}) {
				if last = err; err == nil {
					seen++
				}
				if seen == most {
					break
				}
			}
			if most == 1 {
				_, last = c.Info(t.Context())
			}
			var limit *remote.LimitError
			require.ErrorAs(t, last, &limit)
			require.EqualValues(t, 100_000, limit.Most)
			require.LessOrEqual(t, seen, 101)
		})
	}
}

// A home with 100,000 threads is listed completely.
func TestLongList(t *testing.T) {
	t.Parallel()
	theirs, out := io.Pipe()
	in, answers := io.Pipe()
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	go func() {
		w := bufio.NewWriterSize(answers, 1<<20)
		_, _ = w.WriteString(wire.Magic + frame('.', greeting))
		title := strings.Repeat("x", 900)
		for i := range 100_000 {
			_, _ = w.WriteString(frame('v', fmt.Sprintf(`{"state":{"thread":"01ARZ3NDEKTSV4RR%010d","head":"4EAEYQKFHTJ23","facts":{"title":%q}}}`, i, title)))
		}
		_, _ = w.WriteString(frame('.', "{}"))
		_ = w.Flush()
	}()
	c, err := wire.Connect(t.Context(), in, out, func() error {
		_ = out.Close()
		return in.Close()
	}, wire.Options{Hash: cas.XXH3})
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	seen := 0
	for _, err := range c.Threads(t.Context(), remote.Filter{}) {
		require.NoError(t, err)
		seen++
	}
	require.Equal(t, 100_000, seen)
}

// A call ends if its context is canceled.
func TestContextInTheMiddle(t *testing.T) {
	t.Parallel()
	c, err := stranger(t, true, wire.Magic+frame('.', greeting), frame('v', `{"hashes":["4EAEYQKFHTJ23"]}`))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range c.Walk(ctx, nil, nil) {
		last = err
		cancel()
	}
	require.ErrorIs(t, last, context.Canceled)
}

// An invalid message of a client is answered with an error, and the server ends.
func TestHostileClients(t *testing.T) {
	t.Parallel()
	hello := wire.Magic + frame('q', `{"verb":"hello","versions":[1],"hash":"xxh3"}`) + frame('.', "{}")
	for name, says := range map[string]string{
		"nonsense":                  "GET / HTTP/1.1\r\n\r\n",
		"half of the magic":         wire.Magic[:4],
		"no hello":                  wire.Magic + frame('q', `{"verb":"info"}`) + frame('.', "{}"),
		"a giant frame":             wire.Magic + "q\x7f\xff\xff\xff",
		"an endless request":        wire.Magic + strings.Repeat("q\x80\x10\x00\x00"+strings.Repeat("x", 1<<20), 9),
		"no JSON":                   wire.Magic + frame('q', "}{") + frame('.', "{}"),
		"a request of another kind": hello + frame('n', "x"),
		"a request without an end":  hello + frame('q', `{"verb":"info"}`),
		"two requests at once":      hello + frame('q', `{"verb":"info"}`) + frame('q', `{"verb":"info"}`),
		"hello twice":               hello + strings.TrimPrefix(hello, wire.Magic),
		"no version that is known":  wire.Magic + frame('q', `{"verb":"hello","versions":[2],"hash":"xxh3"}`) + frame('.', "{}"),
		"no hash function":          wire.Magic + frame('q', `{"verb":"hello","versions":[1],"hash":"md5"}`) + frame('.', "{}"),
		"a verb that is none":       hello + frame('q', `{"verb":"drop"}`) + frame('.', "{}"),
		"a node without a hash":     hello + frame('q', `{"verb":"put"}`) + frame('n', "x") + frame('.', "{}"),
		"a node cut in the middle":  hello + frame('q', `{"verb":"put"}`) + frame('n', "4EAEYQKFHTJ23xxxxx")[:9],
		"content of another hash":   hello + frame('q', `{"verb":"put"}`) + frame('n', "4EAEYQKFHTJ23xxxxx") + frame('.', "{}"),
		"records where none belong": hello + frame('q', `{"verb":"info"}`) + frame('n', "4EAEYQKFHTJ23xxxxx") + frame('.', "{}"),
		"no hashes":                 hello + frame('q', `{"verb":"get","hashes":["../../etc/pass"]}`) + frame('.', "{}"),
		"a thread that is a path":   hello + frame('q', `{"verb":"thread","thread":"../../etc/passwd"}`) + frame('.', "{}"),
		"a swap of nothing":         hello + frame('q', `{"verb":"swap"}`) + frame('.', "{}"),
		"a lease for ever":          hello + frame('q', `{"verb":"take","thread":"`+idA+`","holder":"x","ms":9223372036854775807}`) + frame('.', "{}"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := remotetest.NewDirectory(t, cas.XXH3, time.Now)
			var out bytes.Buffer
			err := wire.Serve(t.Context(), strings.NewReader(says), &out, func(context.Context, wire.Hello) (remote.Remote, error) { return r, nil })
			require.True(t, err != nil || strings.Contains(out.String(), `"error"`), "%q", out.String())
			require.True(t, strings.HasPrefix(out.String(), wire.Magic))
			require.Contains(t, out.String(), `"error"`, "it is told")
			for _, err := range r.Threads(t.Context(), remote.Filter{}) {
				require.NoError(t, err)
				t.Error("a thread has come of it")
			}
		})
	}
}

// A canceled server ends, even if its client is silent.
func TestServerEnds(t *testing.T) {
	t.Parallel()
	in, _ := io.Pipe()
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	done := make(chan error, 1)
	go func() {
		done <- wire.Serve(ctx, in, io.Discard, func(context.Context, wire.Hello) (remote.Remote, error) { return nil, over })
	}()
	cancel(over)
	require.ErrorIs(t, <-done, over)
}
