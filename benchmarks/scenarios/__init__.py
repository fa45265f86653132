"""Twenty tasks on four applications from the package registries. See benchmarks/README.md.

apps      installs, seeds and starts Trac, DokuWiki, Wagtail and JupyterLab
tasks     the tasks, each with its answer or with a check of what it changed
__main__  python -m benchmarks.scenarios
"""
