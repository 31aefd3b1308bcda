exec(open('/tmp/w/dv/p.py').read())
from kernel_forge.devices.compilers.nvcc import find_nvcc
d=dev(); d.judge=Judge("g++",(find_nvcc(),)); print(d.judge.description)
K="__global__ void k(float* y) {\n %s }\n"
for t in (K%"y[threadIdx.x]=1;", K%"y[threadIdx.x]=undeclared1;", '#include "mpi.h"\n#include <cublas_v2.h>\n#include <cub/cub.cuh>\n'+K%"y[threadIdx.x]=2;", K%"y[threadIdx.x]=twice(2);"+"", "template <class T> __device__ T twice(T v) { return v * *v; }\n"+K%"y[threadIdx.x]=twice(2);"):
    for _ in range(2):
        t0=time.time(); a=d.compile(CompileRequest("/tests/q.cu",t,("k",))); print(round(time.time()-t0,2),str(a)[:400],flush=True)
