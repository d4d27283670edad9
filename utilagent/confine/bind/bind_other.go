//go:build !linux

package bind

import "github.com/united-workforce/uwf/utilagent/confine"

func become(confine.Rules, []string, []string) error { return confine.ErrUnavailable }
