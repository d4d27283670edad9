package box

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/hostlist"
	"github.com/united-workforce/uwf/util/proc/plan"
	"github.com/united-workforce/uwf/utilagent/box/proxy"
)

// outlet is the proxy of a run, outside of the program's network.
type outlet struct {
	*proxy.Proxy
	stop func()
}

// network gives the program a network of its own, and a proxy to the hosts that it can reach.
func (b *builder) network(r Request, run *Run) error {
	if r.Network.All() {
		return nil
	}
	b.plan.Network = true
	b.plan.Env = withoutProxies(b.plan.Env)
	if len(r.Network.Hosts()) == 0 {
		return nil
	}
	allow, err := hostlist.Parse(r.Network.Hosts())
	if err != nil {
		return fmt.Errorf("sandbox.network: %w", err)
	}
	b.plan.Listen = true
	b.plan.Env = append(b.plan.Env, proxies()...)
	run.outlet = &outlet{proxy.New(allow, proxy.Options{}), func() {}}
	return nil
}

// serve serves the listener of the program's network until stop.
func (o *outlet) serve(f *os.File) {
	l, err := net.FileListener(f)
	_ = f.Close() // l has a descriptor of its own
	if err != nil {
		return // the program finds that nobody answers
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = o.Serve(ctx, l) // as above
	}()
	o.stop = func() { cancel(); <-done }
}

// proxyVariables name a proxy to programs, in lower case and upper case.
func proxyVariables() []string { return []string{"http_proxy", "https_proxy", "all_proxy"} }

// proxies are the variables that lead programs to the proxy.
func proxies() []string {
	env := []string{"NODE_USE_ENV_PROXY=1"}
	for _, name := range proxyVariables() {
		value := fmt.Sprintf("=http://127.0.0.1:%d", plan.ListenPort)
		env = append(env, name+value, strings.ToUpper(name)+value)
	}
	return env
}

// withoutProxies drops the user's own proxies, which cannot be reached.
func withoutProxies(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(strings.ToLower(kv), "=")
		return name == "no_proxy" || name == "node_use_env_proxy" || slices.Contains(proxyVariables(), name)
	})
}

// Refused returns the hosts that the program could not reach.
func (run *Run) Refused() []proxy.Refusal {
	if run.outlet == nil {
		return nil
	}
	return run.outlet.Refused()
}

// unreached says which hosts were refused, in words that follow the name of the program.
func unreached(refused []proxy.Refusal) string {
	const most = 10 // in one line
	var names []string
	others := 0
	for _, r := range refused {
		if r.Host == "" || len(names) == most {
			others += r.Count
			continue
		}
		names = append(names, net.JoinHostPort(r.Host, fmt.Sprint(r.Port)))
	}
	switch {
	case len(names) == 0:
		return ""
	case others > 0:
		names = append(names, fmt.Sprintf("others (%d times)", others))
	}
	return "could not reach " + strings.Join(names, ", ") + ": sandbox.network in config.yaml"
}
