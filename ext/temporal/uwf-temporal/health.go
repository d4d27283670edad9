package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/united-workforce/uwf/ext/temporal/slot"
)

// pausing hands out slots while the worker is not paused.
type pausing struct {
	worker.SlotSupplier
	health *slot.Health
}

// ReserveSlot implements [worker.SlotSupplier].
func (p pausing) ReserveSlot(ctx context.Context, info worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	if err := p.health.Wait(ctx); err != nil {
		return nil, err
	}
	return p.SlotSupplier.ReserveSlot(ctx, info)
}

// TryReserveSlot implements [worker.SlotSupplier].
func (p pausing) TryReserveSlot(info worker.SlotReservationInfo) *worker.SlotPermit {
	if until, _ := p.health.Paused(); !until.IsZero() {
		return nil
	}
	return p.SlotSupplier.TryReserveSlot(info)
}

// tuned returns a tuner with n slots for steps; the other sizes are the SDK's defaults.
func tuned(n int, health *slot.Health) (worker.WorkerTuner, error) {
	const others = 100
	o := worker.CompositeTunerOptions{}
	for to, size := range map[*worker.SlotSupplier]int{
		&o.WorkflowSlotSupplier: others, &o.ActivitySlotSupplier: n, &o.LocalActivitySlotSupplier: others,
		&o.NexusSlotSupplier: others, &o.SessionActivitySlotSupplier: others,
	} {
		s, err := worker.NewFixedSizeSlotSupplier(size)
		if err != nil {
			return nil, err
		}
		*to = s
	}
	o.ActivitySlotSupplier = pausing{o.ActivitySlotSupplier, health}
	return worker.NewCompositeTuner(o)
}

// probed is the response to a probe.
type probed struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
	Slots  int    `json:"maxConcurrentSteps"`
}

// probes serves /healthz until the context ends: status 200 while steps are taken, else 503.
func (cmd *command) probes(ctx context.Context, conf config, temporal client.Client,
	health *slot.Health) (end func(), err error) {
	if conf.Listen == "" {
		return func() {}, nil
	}
	listening, err := (&net.ListenConfig{}).Listen(ctx, "tcp", conf.Listen)
	if err != nil {
		return nil, err
	}
	const patience = 5 * time.Second
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		answer := probed{OK: true, Slots: conf.Slots}
		if until, _ := health.Paused(); !until.IsZero() { // the reason is only in the log, because anyone can send a probe
			answer.OK, answer.Reason = false, "this machine cannot make steps; the log has the reason"
		} else if _, err := temporal.CheckHealth(ctx, nil); err != nil {
			answer.OK, answer.Reason = false, "cannot reach temporal"
		}
		w.Header().Set("Content-Type", "application/json")
		if !answer.OK {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(answer) // the client may have disconnected
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: patience, ReadTimeout: patience, WriteTimeout: 2 * patience}
	go func() { _ = server.Serve(listening) }()
	cmd.logText("probes: http://" + listening.Addr().String() + "/healthz")
	return func() { _ = server.Close() }, nil
}
