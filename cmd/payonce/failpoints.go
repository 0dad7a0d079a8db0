package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/payonce/payonce/cmd/payonce/internal/config"
	"github.com/payonce/payonce/internal/run"
)

func newFailpoints(io streams) *cobra.Command {
	return &cobra.Command{
		Use:    "failpoints",
		Short:  "List the places where a test build can be told to fail",
		Long:   "Lists the names for " + config.EnvFailpoint + "=name:kill|error|hang, one on a line. Only builds with -tags failpoint have them.",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(*cobra.Command, []string) error {
			if !run.FailpointsBuilt {
				return exit(exitNotGood, "this build has no failpoints; build with -tags failpoint")
			}
			for _, name := range run.Failpoints {
				fmt.Fprintln(io.out, name)
			}
			return nil
		},
	}
}
