package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/united-workforce/uwf/ext/temporal/flow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// config is the configuration of a machine. It contains no secrets; those come from the environment (see
// connect).
type config struct {
	Remote    string `json:"remote"`    // name of a remote in the home
	Address   string `json:"address"`   // HOST:PORT of Temporal
	Namespace string `json:"namespace"` // Temporal namespace
	Queue     string `json:"queue"`     // default task queue
	// Queues maps workflows and roles to task queues.
	Queues map[string]map[string]string `json:"queues"`

	// Settings of workers.
	Dir   string   `json:"dir"`                // directory of the slots, on a local disk
	Slots int      `json:"maxConcurrentSteps"` // maximum concurrent steps
	Drain duration `json:"shutdownTimeout"`    // time for steps in flight to end when the worker stops
	Watch duration `json:"watch"`              // interval at which a worker checks a thread that waits for a person
	Lease duration `json:"lease"`              // lease duration, for which others wait if a stepping process dies
	// Listen is the HOST:PORT for health probes; "" disables them.
	Listen string `json:"listen"`
	// Silence is the time without heartbeats after which another worker gets a step. It applies to threads
	// started with this config.
	Silence duration `json:"heartbeatTimeout"`

	home string // home with threads, config and agents
}

// duration is a duration written as in 10m.
type duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err == nil && v <= 0 {
		err = errors.New("want a duration above zero, such as 10m")
	}
	*d = duration(v)
	return err
}

// maxConfig is the maximum size of the file in bytes.
const maxConfig = 1 << 20

// config reads the file and adds defaults.
func (cmd *command) config(file string) (config, error) {
	var c config
	dirs, err := home.Find(cmd.env, "", "")
	if err != nil {
		return c, err
	}
	path := filepath.Join(dirs.Home, "temporal.yaml")
	if file != "" {
		path = cmd.env.Path(file)
	}
	text, err := safeopen.ReadFile(path, maxConfig, safeopen.Follow)
	if file != "" || !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return c, err
		}
		if err := parse(text, &c); err != nil {
			return c, &protocol.Error{Code: protocol.CodeInvalid, Message: path + ": " + err.Error(), Err: err}
		}
	}
	c.home = dirs.Home
	c.Address = cmp.Or(c.Address, cmd.env.Get("TEMPORAL_ADDRESS"), client.DefaultHostPort)
	c.Namespace = cmp.Or(c.Namespace, cmd.env.Get("TEMPORAL_NAMESPACE"), client.DefaultNamespace)
	c.Queue = cmp.Or(c.Queue, flow.Queue)
	c.Slots = cmp.Or(c.Slots, 2*runtime.NumCPU())
	c.Drain = cmp.Or(c.Drain, duration(10*time.Minute))
	c.Watch = cmp.Or(c.Watch, duration(time.Second/2))
	c.Lease = cmp.Or(c.Lease, duration(30*time.Second))
	c.Silence = cmp.Or(c.Silence, duration(30*time.Second))
	// Don't put it in the home, where steps are not allowed to work.
	c.Dir = cmp.Or(c.Dir, filepath.Join(cmp.Or(cmd.env.Get("XDG_CACHE_HOME"), filepath.Join(home.User(cmd.env),
		".cache")), program))
	if !filepath.IsAbs(c.Dir) {
		c.Dir = filepath.Join(filepath.Dir(path), c.Dir)
	}
	return c, nil
}

func parse(text []byte, c *config) error {
	doc, err := yamldoc.Parse(text, yamldoc.Bounds{})
	if err != nil {
		return err
	}
	if doc.Root.Value() == nil {
		return nil
	}
	asJSON, err := json.Marshal(doc.Root.Value())
	if err != nil {
		return err
	}
	from := json.NewDecoder(bytes.NewReader(asJSON))
	from.DisallowUnknownFields()
	if err := from.Decode(c); err != nil {
		text := strings.TrimPrefix(err.Error(), "json: ")
		for was, now := range map[string]string{"slots": "maxConcurrentSteps", "drain": "shutdownTimeout",
			"silence": "heartbeatTimeout"} {
			if strings.Contains(text, strconv.Quote(was)) {
				text += "; it is " + now + " now"
			}
		}
		return errors.New(text)
	}
	if c.Slots < 0 || c.Slots > maxSlots {
		return fmt.Errorf("maxConcurrentSteps: between 1 and %d", maxSlots)
	}
	// uwf would refuse each step, and the threads would fail.
	if lease := time.Duration(c.Lease); lease != 0 && (lease < remote.MinLease || lease > remote.MaxLease) {
		return fmt.Errorf("lease: between %s and %s", protocol.Span(remote.MinLease), protocol.Span(remote.MaxLease))
	}
	if c.Watch != 0 && time.Duration(c.Watch) < minWatch {
		return fmt.Errorf("watch: at least %s", minWatch)
	}
	return nil
}

const (
	maxSlots = 1000
	minWatch = 50 * time.Millisecond // with less, a remote's helper would do nothing else
)

// prefixOfSecrets is the prefix of Temporal's variables, which agents don't receive.
const prefixOfSecrets = "TEMPORAL_"

// connect connects to Temporal. It uses the same variables as Temporal's own programs.
func (cmd *command) connect(ctx context.Context, c config, identity string, logger log.Logger) (client.Client, error) {
	o := client.Options{HostPort: c.Address, Namespace: c.Namespace, Identity: identity, Logger: logger}
	get := func(name string) string { return cmd.env.Get(prefixOfSecrets + name) }
	key := get("API_KEY")
	if key != "" {
		o.Credentials = client.NewAPIKeyStaticCredentials(key)
	}
	if key != "" || get("TLS") == "true" || get("TLS_SERVER_CA_CERT_PATH") != "" || get("TLS_CLIENT_CERT_PATH") != "" {
		conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: get("TLS_SERVER_NAME")}
		if file := get("TLS_SERVER_CA_CERT_PATH"); file != "" {
			text, err := safeopen.ReadFile(file, maxConfig, safeopen.Follow)
			if err != nil {
				return nil, err
			}
			if conf.RootCAs = x509.NewCertPool(); !conf.RootCAs.AppendCertsFromPEM(text) {
				return nil, fmt.Errorf("%s contains no certificate", file)
			}
		}
		if file := get("TLS_CLIENT_CERT_PATH"); file != "" {
			cert, err := tls.LoadX509KeyPair(file, get("TLS_CLIENT_KEY_PATH"))
			if err != nil {
				return nil, err
			}
			conf.Certificates = []tls.Certificate{cert}
		}
		o.ConnectionOptions = client.ConnectionOptions{TLS: conf}
	}
	dialled, err := client.DialContext(ctx, o)
	if err != nil {
		return nil, &protocol.Error{Code: protocol.CodeFailed, Err: err,
			Message: fmt.Sprintf("cannot reach temporal at %s: %v", c.Address, err),
			Hints:   []string{"export TEMPORAL_ADDRESS=HOST:PORT"}}
	}
	return dialled, nil
}

// process returns the environment for engines and steps, without Temporal's secrets.
func (cmd *command) process() env.Env {
	e := cmd.env
	e.Environ = slices.DeleteFunc(slices.Clone(e.Environ), func(entry string) bool {
		return strings.HasPrefix(strings.ToUpper(entry), prefixOfSecrets)
	})
	return e
}

// identity returns the identity of a worker, which Temporal and list show.
func identity() string {
	name, err := os.Hostname()
	if err != nil {
		name = "?"
	}
	return fmt.Sprintf("%s, process %d", name, os.Getpid())
}
