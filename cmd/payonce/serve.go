package main

import (
	"github.com/spf13/cobra"

	"github.com/payonce/payonce/cmd/payonce/internal/config"
)

func newServe(io streams) *cobra.Command {
	var src source
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the service: API, checkout pages and, unless worker is false, the workers",
		Long: `Runs the service until SIGTERM or SIGINT, then lets what is under way end for at
most ten seconds.

The database must have been prepared by payonce migrate up. Settings come from
the configuration file and from variables named ` + config.Prefix + `…, which win. Any number
of processes may serve one database, each under a node_id of its own. A process
that starts goes on at once with what an earlier start of its node_id left
behind, when it gets the lock of that node_id in state_dir; otherwise it warns
and waits until the leases end.`,
		Example: `  payonce serve --config payonce.yaml
  PAYONCE_DATABASE_URL_FILE=/run/secrets/db payonce serve --config payonce.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := io.jsonLog()
			c, err := src.load(log)
			if err != nil {
				return err
			}
			ctx, stop := untilStopped(cmd.Context())
			defer stop()
			p := plan{config: c, log: log}
			if p.api, err = listen(ctx, "addr", c.Addr, 0); err != nil {
				return err
			}
			defer p.api.Close()
			if p.admin, err = listen(ctx, "admin_addr", c.AdminAddr, 0); err != nil {
				return err
			}
			defer p.admin.Close()
			return runService(ctx, p)
		},
	}
	src.flags(cmd, false)
	return cmd
}

func newWorker(io streams) *cobra.Command {
	var src source
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run the workers alone, without API and pages",
		Long: `Runs the loops that find due work: payments whose outcome has to be asked for,
calls whose process died, orders past their end. It opens no socket. Give it a
node_id of its own; workers and services may run side by side in any number.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := io.jsonLog()
			c, err := src.load(log)
			if err != nil {
				return err
			}
			c.Worker = true
			ctx, stop := untilStopped(cmd.Context())
			defer stop()
			return runService(ctx, plan{config: c, log: log})
		},
	}
	src.flags(cmd, false)
	return cmd
}
