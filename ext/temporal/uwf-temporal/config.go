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

// config is what a machine knows of Temporal. Secrets are not in it: they come from the
// environment (connection.go).
type config struct {
	Remote    string `json:"remote"`    // a name that the home's config.yaml has under remotes
	Address   string `json:"address"`   // HOST:PORT of Temporal
	Namespace string `json:"namespace"` // of Temporal
	Queue     string `json:"queue"`     // of tasks
	// Queues are those of roles: by workflow, then by role.
	Queues map[string]map[string]string `json:"queues"`

	// Of workers.
	Dir   string   `json:"dir"`                // for the slots; on a local disk
	Slots int      `json:"maxConcurrentSteps"` // steps at once
	Drain duration `json:"shutdownTimeout"`    // that steps in flight may take once the worker is to stop
	Watch duration `json:"watch"`              // how often a worker looks at one of the threads that wait for a person
	Lease duration `json:"lease"`              // how long others wait for a thread if the process that steps it dies
	// Listen is the HOST:PORT at which a worker answers probes; "": nowhere.
	Listen string `json:"listen"`
	// Silence is after how long without a word from its worker a step is given to another
	// one, in threads that are started with this config.
	Silence duration `json:"heartbeatTimeout"`

	home string // of threads, config and agents
}

// duration is a length of time as people write it, such as 10m.
type duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err == nil && v <= 0 {
		err = errors.New("a length of time such as 10m is above zero")
	}
	*d = duration(v)
	return err
}

// maxConfig bounds the file, in bytes.
const maxConfig = 1 << 20

// config reads the file, and completes what it does not say.
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
	// Not in the home: uwf lets nobody work there.
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
	// uwf would refuse each step, which fails its thread.
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
	minWatch = 50 * time.Millisecond // less is all that a helper of the remote would do
)

// prefixOfSecrets begins the variables that are Temporal's; agents do not get them.
const prefixOfSecrets = "TEMPORAL_"

// connect connects to Temporal. The variables are those of Temporal's own programs.
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
				return nil, fmt.Errorf("%s holds no certificate", file)
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
			Message: fmt.Sprintf("temporal at %s cannot be reached: %v", c.Address, err),
			Hints:   []string{"address: in the config, or TEMPORAL_ADDRESS, says where it is"}}
	}
	return dialled, nil
}

// process returns the facts of this process for engines and steps: without the secrets of Temporal.
func (cmd *command) process() env.Env {
	e := cmd.env
	e.Environ = slices.DeleteFunc(slices.Clone(e.Environ), func(entry string) bool {
		return strings.HasPrefix(strings.ToUpper(entry), prefixOfSecrets)
	})
	return e
}

// identity says who a worker is: Temporal shows it, and list.
func identity() string {
	name, err := os.Hostname()
	if err != nil {
		name = "?"
	}
	return fmt.Sprintf("%s, process %d", name, os.Getpid())
}
