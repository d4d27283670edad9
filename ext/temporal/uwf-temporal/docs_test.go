package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// block returns the content of the first code block in docs/scale-out.md that contains words.
func block(t *testing.T, words string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "scale-out.md"))
	require.NoError(t, err)
	for _, part := range regexp.MustCompile("(?s)```[a-z ]*\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(part[1], words) {
			return part[1]
		}
	}
	require.Fail(t, "no block has "+words)
	return ""
}

// deployed returns a file of ext/temporal/deploy.
func deployed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "deploy", name))
	require.NoError(t, err)
	return string(text)
}

// readAs decodes a YAML file of ext/temporal/deploy; unknown keys are errors.
func readAs[T any](t *testing.T, name string) (v T) {
	t.Helper()
	doc, err := yamldoc.Parse([]byte(deployed(t, name)), yamldoc.Bounds{})
	require.NoError(t, err)
	text, err := json.Marshal(doc.Root.Value())
	require.NoError(t, err)
	from := json.NewDecoder(bytes.NewReader(text))
	from.DisallowUnknownFields()
	require.NoError(t, from.Decode(&v))
	return v
}

// The page states the actual defaults, and its file can be used unchanged.
func TestTheConfigOfTheDocs(t *testing.T) {
	t.Parallel()
	text := block(t, "remote: team\naddress:")
	var said config
	require.NoError(t, parse([]byte(text), &said))
	require.Equal(t, "team", said.Remote)
	require.Equal(t, "gpu", said.Queues["train-model"]["trainer"])
	var all config
	require.NoError(t, parse([]byte(regexp.MustCompile(`(?m)^# `).ReplaceAllString(text, "")), &all))
	home := t.TempDir()
	byDefault, err := (&command{env: env.Env{Environ: []string{"HOME=" + home, "UWF_HOME=" + home}, Dir: home}}).config("")
	require.NoError(t, err)
	require.Equal(t, byDefault.Namespace, all.Namespace)
	require.Equal(t, byDefault.Queue, all.Queue)
	require.Equal(t, byDefault.Drain, all.Drain)
	require.Equal(t, byDefault.Silence, all.Silence)
	require.Equal(t, byDefault.Lease, all.Lease)
	require.Equal(t, byDefault.Watch, all.Watch)
}

// deployment has the fields of a Deployment that kubernetes.yaml uses.
type deployment struct {
	APIVersion string `json:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		Replicas int
		Selector struct{ MatchLabels map[string]string }
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				TerminationGracePeriodSeconds int
				Containers                    []struct {
					Name, Image  string
					Args         []string
					Env          []struct{ Name, Value string }
					VolumeMounts []struct {
						Name, MountPath string
						ReadOnly        bool
					}
				}
				Volumes []struct {
					Name   string
					Secret *struct {
						SecretName  string
						DefaultMode int
					}
					EmptyDir *struct{ Medium, SizeLimit string }
				}
			}
		}
	}
}

// A worker has enough time to stop, and references between the parts resolve.
func TestDeployments(t *testing.T) {
	t.Parallel()
	dir := block(t, "remote: team\naddress:")
	dir = strings.TrimSpace(regexp.MustCompile(`(?m)^dir: (\S+)`).FindStringSubmatch(dir)[1])
	const drain = 10 * time.Minute // the default; see TestTheConfigOfTheDocs

	unit := deployed(t, "uwf-worker.service")
	for _, line := range []string{"KillMode=mixed", "ExecStart=/usr/local/bin/uwf-temporal worker", "Environment=UWF_HOME=/etc/uwf", "RuntimeDirectory=" + filepath.Base(dir)} {
		require.Contains(t, unit, "\n"+line+"\n")
	}
	require.Equal(t, "/run", filepath.Dir(dir))
	minutes := regexp.MustCompile(`TimeoutStopSec=(\d+)min`).FindStringSubmatch(unit)
	require.NotNil(t, minutes)
	stop, err := time.ParseDuration(minutes[1] + "m")
	require.NoError(t, err)
	require.Greater(t, stop, drain)

	d := readAs[deployment](t, "kubernetes.yaml")
	pod := d.Spec.Template.Spec
	require.Equal(t, "apps/v1", d.APIVersion)
	require.Equal(t, d.Spec.Selector.MatchLabels, d.Spec.Template.Metadata.Labels)
	require.Greater(t, time.Duration(pod.TerminationGracePeriodSeconds)*time.Second, drain)
	require.Len(t, pod.Containers, 1)
	c := pod.Containers[0]
	require.Equal(t, []string{"uwf-temporal", "worker"}, c.Args)
	mounted := map[string]string{}
	for _, m := range c.VolumeMounts {
		mounted[m.Name] = m.MountPath
	}
	for _, v := range pod.Volumes {
		require.NotEmpty(t, mounted[v.Name], "volume %s is mounted", v.Name)
	}
	require.Len(t, mounted, len(pod.Volumes))
	require.Equal(t, "UWF_HOME", c.Env[0].Name)
	require.Equal(t, mounted["home"], c.Env[0].Value)
	require.Equal(t, dir, mounted["slots"])

	type compose struct {
		Services map[string]struct {
			Image       string
			Command     []string
			Environment map[string]string
			Secrets     []string
			Volumes     []string
			Ports       []string
		}
		Volumes map[string]struct{}
		Secrets map[string]struct{ File string }
	}
	made := readAs[compose](t, "compose.yaml")
	for name, s := range made.Services {
		for _, secret := range s.Secrets {
			require.Contains(t, made.Secrets, secret, name)
		}
		for _, v := range s.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			require.Contains(t, made.Volumes, volume, name)
		}
		for _, port := range s.Ports {
			require.True(t, strings.HasPrefix(port, "127.0.0.1:"), "%s: nobody else reaches %s", name, port)
		}
	}
}
