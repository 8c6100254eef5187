"""Functions that only kernels call: their code goes into the kernels, and nowhere else.

numba makes machine code of every function, and a wrapper through which Python could call it; of what
is called by kernels only, both are thrown away, and they took half of the time. Here such a function
is typed and lowered, and handed to the module of the kernel that calls it.
"""

from typing import Any

from numba import _dynfunc
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import NativeLowering


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):
    """Lower a function to code that can be linked, without machine code of its own."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower, link what this function calls, and make it known to those that call it."""
        state.flags.no_compile = True
        NativeLowering.run_pass(self, state)
        library, lowered = state.library, state.cr
        for used in dict.fromkeys(library._linking_libraries):
            if hasattr(library, "_reload_init"):  # since numba 0.62
                library._reload_init.update(used._reload_init)
            library._final_module.link_in(used._get_module_for_linking(), preserve=True)
        library._finalized = True
        module, name = lowered.fndesc.lookup_module(), lowered.fndesc.qualname.split(".")[-1]
        # A key, by which callers find the function; its address is 0, as of all that have no wrapper.
        key = _dynfunc.make_function(module, name, "", 0, lowered.env, (library,))
        state.targetctx.insert_user_function(key, lowered.fndesc, [library])
        state.cr = lowered._replace(cfunc=key)
        return True


class PartCompiler(CompilerBase):
    """numba's compiler, with `PartLowering` at its end."""

    def define_pipelines(self) -> list[Any]:
        """Return the passes of numba's own compiler, but for the lowering."""
        passes = PassManager("part")
        for kind, text in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            passes.add_pass(PartLowering if kind is NativeLowering else kind, text)
        passes.finalize()
        return [passes]
